/** What a thread that explains says when it pauses. It goes on when its cell is set. */
export const pausing = "pausing";
