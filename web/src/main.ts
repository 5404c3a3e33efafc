import { mount } from "svelte";
import { App, type Browser } from "./app.svelte";
import { Token } from "./stores/token";
import Page from "./ui/Page.svelte";
import "./generated/palette.css";
import "./style.css";
import "uplot/dist/uPlot.min.css";

declare global {
  interface Window {
    /** For tests and the curious: what the page knows. */
    __sim: App;
  }
}

const { hash } = location; // the token is taken out of it
const dark = window.matchMedia?.("(prefers-color-scheme: dark)");
const token = new Token(location, () => sessionStorage, (address) => history.replaceState(null, "", address));

/** Let the browser save what is at an address. */
function save(url: string, name: string): void {
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
}

const browser: Browser = {
  storage: () => localStorage,
  tabStorage: () => sessionStorage,
  prefersDark: dark?.matches ?? false,
  touches: window.matchMedia?.("(pointer: coarse)").matches ?? false,
  hash,
  width: window.innerWidth,
  nextRepaint: (paint) => void requestAnimationFrame(paint),
  fetch: (url, init) => fetch(url, init),
  download: (blob, name) => {
    const url = URL.createObjectURL(blob);
    save(url, name);
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  },
  save,
  setTheme: (theme) => (document.documentElement.dataset.theme = theme),
  keepToken: (given) => void token.keep(given),
};

const socket = new URL("ws", location.href); // relative: a proxy may serve the page below a path
socket.protocol = socket.protocol.replace("http", "ws");
const app = new App(socket.href, token.get(), browser);
window.__sim = app;
mount(Page, { target: document.getElementById("app")!, props: { app } });
dark?.addEventListener("change", (e) => app.settings.prefer(e.matches));
window.addEventListener("hashchange", () => {
  const other = token.take(); // an address with another token was pasted into this tab
  if (other) app.useToken(other);
});
app.connection.open();
