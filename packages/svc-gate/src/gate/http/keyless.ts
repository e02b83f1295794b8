import type { Socket } from "node:net";
import ipaddr from "ipaddr.js";

/** The connections of one remote address, the oldest first. Of IPv6 a whole /64 counts as one, because one host has it. */
interface Address {
  readonly text: string;
  readonly sockets: Set<Socket>;
}

/**
 * Connections that have not shown a good key yet, the oldest first. Each act takes constant time. Sockets that have
 * closed may stay until they are deleted, or until their turn comes to be closed.
 */
export class Keyless {
  /** If an address has more than this number, its connections are closed first. */
  readonly #share: number;
  readonly #all = new Map<Socket, Address>();
  readonly #addresses = new Map<string, Address>();
  readonly #pastShare = new Set<Address>();

  constructor(share: number) {
    this.#share = share;
  }

  add(socket: Socket): void {
    const text = networkOf(socket.remoteAddress ?? "");
    const address = this.#addresses.get(text) ?? { text, sockets: new Set() };
    this.#addresses.set(text, address);
    this.#all.set(socket, address);
    address.sockets.add(socket);
    if (address.sockets.size > this.#share) this.#pastShare.add(address);
  }

  /** For a connection that showed a good key, and for one that has closed. */
  delete(socket: Socket): void {
    const address = this.#all.get(socket);
    if (address === undefined) return;
    this.#all.delete(socket);
    address.sockets.delete(socket);
    if (address.sockets.size <= this.#share) this.#pastShare.delete(address);
    if (address.sockets.size === 0) this.#addresses.delete(address.text);
  }

  /**
   * Closes the oldest of an address that has more than its share, else the oldest of all.
   *
   * @returns its address, or undefined if there was none to close
   */
  closeOldest(): string | undefined {
    for (;;) {
      const socket = first(first(this.#pastShare.values())?.sockets.values() ?? this.#all.keys());
      if (socket === undefined) return undefined;
      const address = this.#all.get(socket)?.text;
      const wasOpen = !socket.destroyed;
      socket.destroy();
      this.delete(socket);
      if (wasOpen) return address;
    }
  }
}

/** @param address as the system writes it */
export function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  const parsed = ipaddr.IPv6.parse(address);
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString();
  return `${parsed.parts.slice(0, 4).map((part) => part.toString(16)).join(":")}::/64`; // prettier-ignore
}

function first<T>(items: Iterator<T>): T | undefined {
  const { done, value } = items.next();
  return done === true ? undefined : value;
}
