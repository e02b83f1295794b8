export const textMax = 32_768;
export const commandsMax = 500;
