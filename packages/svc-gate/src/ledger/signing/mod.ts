export {
  isKeyText,
  makeSigningKey,
  readSigningKeys,
  Signer,
  writeSigningKeys,
  type SigningKeys,
} from "./signing-key.ts";
