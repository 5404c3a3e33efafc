// The token that lets this page in: it comes in the address, is kept for this tab, and is taken out of the address.

import { readKept, tokenIn, tokenOf, writeKept, type KeptValues } from "./kept";

export const TOKEN_KEY = "botyard-token";

export interface Address {
  hash: string;
  pathname: string;
  search: string;
}

export class Token {
  constructor(
    private address: Address,
    private storage: () => KeptValues,
    /** Shows another address without loading it. */
    private replace: (address: string) => void,
  ) {}

  /** The token in the address, else the one of this tab; "": there is none. */
  get(): string {
    return this.take() || tokenOf(readKept(this.storage, TOKEN_KEY));
  }

  /** The token in the address. It is kept for this tab and taken out, so that it is not shown, bookmarked or shared by accident. */
  take(): string {
    const found = tokenIn(this.address.hash || "#");
    if (found && this.keep(found)) this.replace(this.address.pathname + this.address.search);
    return found;
  }

  /** Whether it could be kept; without storage the address keeps it. */
  keep(token: string): boolean {
    return writeKept(this.storage, TOKEN_KEY, token);
  }
}
