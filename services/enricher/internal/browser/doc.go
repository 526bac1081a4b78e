// Package browser shows pages of the web in a headless Chromium and gives the text that their scripts have made of them.
//
// One Chromium serves all: it is started at the first need, started again when it died, and ended when nobody needed it for minutes. Each page is
// shown in a browser context of its own, as in a private window, so that nothing of one page is there for the next. A context is always closed, and a
// Chromium that does not answer is killed with all its processes.
//
// Pages are hostile. All that Chromium sends goes through a local proxy, which connects to nothing internal; names are never looked up here, and what
// would bypass a proxy is off. Addresses of documents are checked before they are loaded, at each redirect, and once more in the end. A page has
// limits: of time, bytes, requests, memory and the size of what is read of it. It can't download, ask, open windows, nor see files, a camera or a place.
package browser
