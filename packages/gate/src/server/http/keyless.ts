import type { Socket } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * The connections of one remote address, the oldest first. An IPv6 /64 counts as one address, because one host has a
 * whole /64.
 */
interface RemoteAddress {
  readonly text: string;
  readonly sockets: Set<Socket>;
}

/**
 * Connections that have not shown a valid key yet, the oldest first. Each operation takes constant time. Closed sockets
 * may stay in the list until they are deleted, or until it is their turn to be closed.
 */
export class Keyless {
  /** If an address has more than this number, its connections are closed first. */
  readonly #share: number;
  readonly #all = new Map<Socket, { readonly address: RemoteAddress; readonly order: number }>();
  /** The number of connections that were ever added. */
  added = 0;
  readonly #addresses = new Map<string, RemoteAddress>();
  readonly #pastShare = new Set<RemoteAddress>();

  constructor(share: number) {
    this.#share = share;
  }

  add(socket: Socket): void {
    const text = networkOf(socket.remoteAddress ?? "");
    const address = this.#addresses.get(text) ?? { text, sockets: new Set() };
    this.#addresses.set(text, address);
    this.added += 1;
    this.#all.set(socket, { address, order: this.added });
    address.sockets.add(socket);
    if (address.sockets.size > this.#share) this.#pastShare.add(address);
  }

  /** Removes a connection that has shown a valid key or has closed. */
  delete(socket: Socket): void {
    const entry = this.#all.get(socket);
    if (entry === undefined) return;
    const { address } = entry;
    this.#all.delete(socket);
    address.sockets.delete(socket);
    if (address.sockets.size <= this.#share) this.#pastShare.delete(address);
    if (address.sockets.size === 0) this.#addresses.delete(address.text);
  }

  /**
   * Closes the oldest connection of an address that has more than its share, else the oldest of all.
   *
   * @param known the value of `added` at some moment: connections that were added later stay open
   * @returns its address, or undefined if there was none to close
   */
  closeOldest(known: number = Infinity): string | undefined {
    for (;;) {
      const socket = first(first(this.#pastShare.values())?.sockets.values() ?? this.#all.keys());
      const entry = socket && this.#all.get(socket);
      if (socket === undefined || entry === undefined || entry.order > known) return undefined;
      const wasOpen = !socket.destroyed;
      socket.destroy();
      this.delete(socket);
      if (wasOpen) return entry.address.text;
    }
  }
}

/**
 * Returns an IPv4 address, or the /64 of an IPv6 address.
 *
 * @param address an address as the system writes it
 */
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
