/** What each width of a grant by form means, for people. */
export const widthWords: Readonly<Record<string, string>> = {
  same: "exactly this command line",
  texts: "also with other texts, numbers and names",
  files: "also with other files that it reads, below the folder",
};
