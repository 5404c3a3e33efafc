import { mount } from "svelte";
import { App } from "./app.svelte";
import Page from "./ui/Page.svelte";
import "./style.css";
import "uplot/dist/uPlot.min.css";

declare global {
  interface Window {
    /** For tests and the curious: what the page knows. */
    __sim: App;
  }
}

function token(): string {
  const hash = new URLSearchParams(location.hash.slice(1));
  const found = hash.get("token");
  if (found) {
    try {
      sessionStorage.setItem("botyard-token", found);
    } catch {
      // without storage, the address keeps it
      return found;
    }
    // out of the address, so that it is not shown, bookmarked or shared by accident
    history.replaceState(null, "", location.pathname + location.search);
    return found;
  }
  try {
    return sessionStorage.getItem("botyard-token") ?? "";
  } catch {
    return "";
  }
}

const scheme = location.protocol === "https:" ? "wss" : "ws";
const app = new App(`${scheme}://${location.host}/ws`, token());
window.__sim = app;
mount(Page, { target: document.getElementById("app")!, props: { app } });
app.connection.open();
