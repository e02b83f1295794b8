/**
 * The types on the wire, and the parser that reads them from text.
 *
 * Promises: the gate judges exactly the text that was sent. A text is read strictly or refused with the position of the
 * fault. Numbers keep their exact decimal value, and objects have no prototype. Nothing is trimmed, folded, repaired or
 * truncated. Limits and refusals have one table each.
 *
 * Does not: read sockets, decode bytes, know contracts or receipts, keep state. It imports nothing.
 */
export type * from "./answers.ts";
export { canonical, type Canonical } from "./canonical.ts";
export { findUtf8Fault, jsonText, readJson, utf8Bytes, type Json, type JsonDocument, type JsonObject } from "./json.ts";
export { keyKindOf, type KeyKind } from "./key-kind.ts";
export { lengthText } from "./length.ts";
export { limits } from "./limits.ts";
export { isLoopback, isLoopbackUrl, isPrivateUrl } from "./loopback.ts";
export { charactersOf, inputText, numberByValue } from "./input-text.ts";
export { isAmong, isPartOf, memberBelow, overlaps, pathNames, readPath } from "./member-path.ts";
export { requireKnown, WrongMember, type Members } from "./members.ts";
export { didYouMean, editDistance, looksLike, nearest } from "./nearest.ts";
export { closedParts, formText, restWords, widthWords, type OpenWord } from "./open-words.ts";
export { addDecimals, Decimal, decimalText, misreadAs, parseNumber } from "./number.ts";
export { hiddenPattern, marksPattern, quote, quoteAscii, visible } from "./quote.ts";
export { refusals, refuse, type Refusal, type RefusalCode } from "./refusals.ts";
export { parseCheckRequest, typeName, type CheckRequest } from "./request.ts";
export { bad, good, type Result } from "./result.ts";
export { findMembers, isMemberName, memberCharactersMax, memberPattern, type MemberName } from "./spans.ts";
export * from "./verdict.ts";
