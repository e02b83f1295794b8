/** Who acts through a gate's own files, as rows name them. */
export const operatorName = "operator";
