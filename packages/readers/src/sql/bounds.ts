export const textMax = 32_768;
export const statementsMax = 200;
