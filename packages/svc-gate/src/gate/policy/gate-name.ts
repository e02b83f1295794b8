/** The name in the rows of acts that nobody asked for: the gate itself did them. */
export const gateName = "gate";
