import { mount } from "svelte";
import { App } from "./app.svelte";
import Page from "./ui/Page.svelte";
import { tokenIn } from "./ui/text";
import "./style.css";
import "uplot/dist/uPlot.min.css";

declare global {
  interface Window {
    /** For tests and the curious: what the page knows. */
    __sim: App;
  }
}

const KEPT = "botyard-token";

/** The token in the address. It is kept for this tab and taken out, so that it is not shown, bookmarked or shared by accident. */
function takeToken(): string {
  const found = tokenIn(location.hash || "#");
  if (found && keepToken(found)) history.replaceState(null, "", location.pathname + location.search);
  return found;
}

/** Whether it could be kept; without storage the address keeps it. */
function keepToken(token: string): boolean {
  try {
    sessionStorage.setItem(KEPT, token);
    return true;
  } catch {
    return false;
  }
}

function keptToken(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

const scheme = location.protocol === "https:" ? "wss" : "ws";
const app = new App(`${scheme}://${location.host}/ws`, takeToken() || keptToken(), keepToken);
window.__sim = app;
mount(Page, { target: document.getElementById("app")!, props: { app } });
window.addEventListener("hashchange", () => {
  const token = takeToken(); // an address with another token was pasted into this tab
  if (token) app.useToken(token);
});
app.connection.open();
