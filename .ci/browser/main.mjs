// The pages of a real node in a real browser. node.mjs starts `tasard serve` with the rates of a demo, and a mail
// server that keeps all e-mails. browser.mjs starts a headless Chromium. A test fails if the browser reports an error
// in the console, a violation of the policy or a request to another address. Each kind of check has a control: a
// planted fault that the check must find.
//
//	signup.mjs     from an e-mail address to a key and its revocation; with and without JavaScript, in both languages
//	secrets.mjs    where a key must not appear
//	rates.mjs      converter, choices, order, institutions, history, languages
//	docs.mjs       the guide, and the reference that sends requests to the node
//	every.mjs      all pages: policy, accessibility, width, keyboard, headers, pictures
//	service.mjs    HTTP: caching, and that pages cost no quota
//	share.mjs      the card in a frame of another site, the preview of a link
import { after, before } from "node:test";
import * as browser from "./browser.mjs";
import * as node from "./node.mjs";
import "./signup.mjs";
import "./secrets.mjs";
import "./rates.mjs";
import "./docs.mjs";
import "./every.mjs";
import "./service.mjs";
import "./share.mjs";

before(async () => {
  await node.start();
  await browser.start();
});
after(async () => {
  await browser.stop();
  await node.stop();
});
