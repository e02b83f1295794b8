/** The name in rows of an operator who works on the gate's own files. */
export const operatorName = "operator";
