// Names in rows of acts without a key. No key may have one of them.

/** Nobody requested the act: the gate itself did it. */
export const gateName = "gate";
/** An operator works on the gate's own files. */
export const operatorName = "operator";
/** An erasure by age. */
export const retentionName = "retention";
