// Package webui looks at the web interface with a real browser, before the whole gateway in one process. With -screenshots DIR its tests write pictures of
// all sections there. What needs npm has the build tag e2e.
package webui
