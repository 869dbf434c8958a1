// The pages of a real node in a real browser. node.mjs starts `tasard serve` with the rates of a demo and a mail server that catches its
// letters, browser.mjs a headless Chromium whose visitors are watched: an error in the console, a breach of the policy or a request to
// another address fails the test that it happened in, whatever it was about. Each kind of check has a control: something planted that it
// must find.
//
//	signup.mjs     from an address to a key and back, by letter; with and without JavaScript, in both languages
//	secrets.mjs    where a key must not be
//	rates.mjs      converter, choices, order, institutions, history, languages
//	docs.mjs       the guide, and the reference that asks the node
//	every.mjs      all pages of pages.mjs: policy, accessibility, width, keyboard, headers, pictures
//	service.mjs    what the network sees: caching, and that pages cost no quota
import { after, before } from "node:test";
import * as browser from "./browser.mjs";
import * as node from "./node.mjs";
import "./signup.mjs";
import "./secrets.mjs";
import "./rates.mjs";
import "./docs.mjs";
import "./every.mjs";
import "./service.mjs";

before(async () => {
  await node.start();
  await browser.start();
});
after(async () => {
  await browser.stop();
  await node.stop();
});
