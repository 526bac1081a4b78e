package guardtest

import (
	"fmt"
	"net/http"
	"strings"
)

// Setup is a hostile arrangement of pages and names.
type Setup struct {
	Name string
	// Start arranges it in a world and returns the address that a victim would fetch. It may be started once in each world, beside all others.
	Start func(w *World) (url string)
	// Readable: the first page may be read, and only what it refers to leads inside, which a browser follows and plain HTTP does not.
	Readable bool
}

// Setups are all of them, none of which may reach a trap of the world, by plain HTTP or in a browser.
func Setups() []Setup {
	var all []Setup
	for name, to := range redirects {
		all = append(all, Setup{Name: "redirect to " + name, Start: func(w *World) string {
			return w.start(name, func(r *http.ServeMux, self string) {
				r.HandleFunc("/", Redirect(http.StatusFound, w.fill(to, self)))
			})
		}})
	}
	for _, status := range []int{http.StatusMovedPermanently, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		all = append(all, Setup{Name: fmt.Sprintf("status %d to loopback", status), Start: func(w *World) string {
			return w.start(fmt.Sprintf("s%d", status), func(r *http.ServeMux, self string) {
				r.HandleFunc("/", Redirect(status, w.fill("http://127.0.0.1:PORT/", self)))
			})
		}})
	}
	all = append(all, chains()...)
	for name, answers := range rebindings {
		all = append(all, rebinding(name, answers))
	}
	for name, answers := range answers {
		all = append(all, Setup{Name: "a name with " + name, Start: func(w *World) string {
			w.Resolve(hostOf(name), answers...)
			return "http://" + hostOf(name) + ":" + w.TrapPort() + "/"
		}})
	}
	for name, body := range pages {
		all = append(all, Setup{Name: "page with " + name, Readable: true, Start: func(w *World) string {
			return w.start("page "+name, func(r *http.ServeMux, self string) {
				r.HandleFunc("/", Page(w.fill(body, self)))
				r.HandleFunc("/inside", Redirect(http.StatusFound, w.fill("http://127.0.0.1:PORT/", self)))
			})
		}})
	}
	return all
}

// hostOf makes a name in DNS of the name of a set-up.
func hostOf(name string) string {
	label := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return "x-" + label[:min(len(label), 50)] + "-x.example.com"
}

// start serves a public host of its own for a set-up.
func (w *World) start(name string, arrange func(r *http.ServeMux, self string)) (url string) {
	host := hostOf(name)
	w.Resolve(host, PublicIP)
	return w.serveOn(host, "http://"+host, arrange)
}

func (w *World) serveOn(host, self string, arrange func(r *http.ServeMux, self string)) (url string) {
	r := http.NewServeMux()
	arrange(r, self)
	w.ServeHost(host, r)
	return self + "/"
}

// fill puts the port of the traps and the address of the set-up itself into a text.
func (w *World) fill(text, self string) string {
	return strings.NewReplacer("PORT", w.TrapPort(), "SELF", self).Replace(text)
}

var redirects = map[string]string{
	"loopback":               "http://127.0.0.1:PORT/secret",
	"loopback over TLS":      "https://127.0.0.1:PORT/secret",
	"loopback in IPv6":       "http://[::1]:PORT/",
	"a mapped address":       "http://[::ffff:127.0.0.1]:PORT/",
	"a decimal number":       "http://2130706433:PORT/",
	"a hexadecimal number":   "http://0x7f.0.0.1:PORT/",
	"an octal number":        "http://0177.0.0.1:PORT/",
	"a short address":        "http://127.1:PORT/",
	"the address of nobody":  "http://0.0.0.0:PORT/",
	"full-width digits":      "http://１２７.0.0.1:PORT/",
	"a final dot":            "http://127.0.0.1.:PORT/",
	"no scheme":              "//127.0.0.1:PORT/",
	"no scheme, decimal":     "//2130706433:PORT/",
	"backslashes":            `\\127.0.0.1:PORT\`,
	"one backslash":          `/\127.0.0.1:PORT/`,
	"a user":                 "http://page.example.com@127.0.0.1:PORT/",
	"a user and backslash":   `http://page.example.com\@127.0.0.1:PORT/`,
	"a fragment":             "http://127.0.0.1:PORT#@page.example.com/",
	"localhost":              "http://localhost:PORT/",
	"localhost with dot":     "http://localhost.:PORT/",
	"metadata":               "http://169.254.169.254/latest/meta-data/",
	"metadata in IPv6":       "http://[fd00:ec2::254]/latest/meta-data/",
	"a private address":      "http://10.0.0.1/",
	"a file":                 "file:///etc/hostname",
	"gopher":                 "gopher://127.0.0.1:PORT/_x",
	"ftp":                    "ftp://127.0.0.1:PORT/",
	"a script":               "javascript:location='http://127.0.0.1:PORT/'",
	"data":                   "data:text/html,<script>location='http://127.0.0.1:PORT/'</script>",
	"a port of mail":         "http://page.example.com:25/",
	"itself":                 "SELF/",
	"a name that is nowhere": "http://no-such-name.invalid/",
}

func chains() []Setup {
	return []Setup{
		{Name: "the fifth redirect leads inside", Start: func(w *World) string {
			return w.start("fifth", func(r *http.ServeMux, self string) {
				for i, path := range []string{"/{$}", "/1", "/2", "/3"} {
					r.HandleFunc(path, Redirect(http.StatusFound, fmt.Sprintf("%s/%d", self, i+1)))
				}
				r.HandleFunc("/4", Redirect(http.StatusFound, w.fill("http://127.0.0.1:PORT/", self)))
			})
		}},
		{Name: "redirects without end", Start: func(w *World) string {
			return w.start("endless", func(r *http.ServeMux, self string) {
				r.HandleFunc("/", func(rw http.ResponseWriter, req *http.Request) {
					Redirect(http.StatusFound, self+req.URL.Path+"a")(rw, req)
				})
			})
		}},
		{Name: "a circle of three", Start: func(w *World) string {
			return w.start("circle", func(r *http.ServeMux, self string) {
				r.HandleFunc("/{$}", Redirect(http.StatusFound, self+"/b"))
				r.HandleFunc("/b", Redirect(http.StatusMovedPermanently, "c"))
				r.HandleFunc("/c", Redirect(http.StatusTemporaryRedirect, "/"))
			})
		}},
		{Name: "a redirect to nowhere", Start: func(w *World) string {
			return w.start("nowhere", func(r *http.ServeMux, _ string) { r.HandleFunc("/", Redirect(http.StatusFound, "http://[")) })
		}},
		{Name: "a redirect to a name that is rebound meanwhile", Start: func(w *World) string {
			w.Rebind("second.example.com", []string{PublicIP}, []string{"127.0.0.1"})
			w.ServeHost("second.example.com", Redirect(http.StatusFound, w.fill("http://second.example.com:PORT/again", "")))
			return w.start("to-rebound", func(r *http.ServeMux, self string) {
				r.HandleFunc("/", Redirect(http.StatusFound, w.fill("http://second.example.com:PORT/", self)))
			})
		}},
	}
}

// rebindings are answers to one lookup after the other.
var rebindings = map[string][][]string{
	"public, then loopback":           {{PublicIP}, {"127.0.0.1"}},
	"public, then loopback in IPv6":   {{PublicIP}, {"::1"}},
	"public, then nobody":             {{PublicIP}, {"0.0.0.0"}},
	"public, then a mapped address":   {{PublicIP}, {"::ffff:127.0.0.1"}},
	"public, then both":               {{PublicIP}, {"127.0.0.1", PublicIP}},
	"twice public, then loopback":     {{PublicIP}, {PublicIP}, {"127.0.0.1"}},
	"loopback, then public":           {{"127.0.0.1"}, {PublicIP}, {"127.0.0.1"}},
	"back and forth":                  {{PublicIP}, {"127.0.0.1"}, {PublicIP}, {"127.0.0.1"}, {PublicIP}, {"127.0.0.1"}},
	"public in IPv6, then metadata":   {{PublicIP6}, {"169.254.169.254"}},
	"public, then a private address":  {{PublicIP}, {"192.168.1.1"}},
	"public, then NAT64 for loopback": {{PublicIP}, {"64:ff9b::7f00:1"}},
}

// rebinding has a page that sends to itself, so that each hop looks the name up again, at the port of the traps.
func rebinding(name string, answers [][]string) Setup {
	return Setup{Name: "rebinding: " + name, Start: func(w *World) string {
		host := hostOf(name)
		w.Rebind(host, answers...)
		return w.serveOn(host, "http://"+host+":"+w.TrapPort(), func(r *http.ServeMux, self string) {
			for i, path := range []string{"/{$}", "/1", "/2", "/3", "/4"} {
				r.HandleFunc(path, Redirect(http.StatusFound, fmt.Sprintf("%s/%d", self, i+1)))
			}
			r.HandleFunc("/5", Redirect(http.StatusFound, "http://127.0.0.1/"))
		})
	}}
}

// answers are those of one lookup.
var answers = map[string][]string{
	"loopback last":         {PublicIP, PublicIP6, "127.0.0.1"},
	"loopback first":        {"127.0.0.1", PublicIP},
	"loopback in IPv6":      {PublicIP, "::1"},
	"a zone":                {"fe80::1%lo"},
	"a mapped address":      {PublicIP, "::ffff:127.0.0.1"},
	"a compatible address":  {"::127.0.0.1"},
	"an address of 6to4":    {"2002:7f00:1::"},
	"an address of Teredo":  {"2001:0:7f00:1::"},
	"the address of nobody": {"0.0.0.0"},
	"nobody in IPv6":        {"::"},
	"metadata":              {"169.254.169.254"},
	"carriers' NAT":         {"100.100.100.200"},
	"broadcast":             {"255.255.255.255"},
	"no address":            {},
}

// pages are bodies of pages that lead a browser inside.
var pages = map[string]string{
	"a picture":            `<img src="http://127.0.0.1:PORT/a.png"><img src="http://2130706433:PORT/b.png" srcset="http://[::1]:PORT/c.png 2x">`,
	"a frame":              `<iframe src="http://127.0.0.1:PORT/"></iframe><iframe src="http://localhost:PORT/"></iframe>`,
	"an object":            `<object data="http://127.0.0.1:PORT/"></object><embed src="http://127.0.0.1:PORT/e">`,
	"a script":             `<script src="http://127.0.0.1:PORT/a.js"></script>`,
	"a module":             `<script type="module">import "http://127.0.0.1:PORT/m.js"</script>`,
	"a style sheet":        `<link rel="stylesheet" href="http://127.0.0.1:PORT/a.css"><style>@import "http://127.0.0.1:PORT/b.css"; body{background:url(http://127.0.0.1:PORT/c.png)}</style>`,
	"a font":               `<style>@font-face{font-family:F;src:url(http://127.0.0.1:PORT/f.woff2)} p{font-family:F}</style>`,
	"hints":                `<link rel="preconnect" href="http://127.0.0.1:PORT/"><link rel="dns-prefetch" href="//localhost:PORT"><link rel="prefetch" href="http://127.0.0.1:PORT/p"><link rel="preload" as="fetch" href="http://127.0.0.1:PORT/q">`,
	"media":                `<video autoplay src="http://127.0.0.1:PORT/v.mp4"></video><audio autoplay src="http://127.0.0.1:PORT/a.mp3"></audio>`,
	"fetch":                `<script>fetch("http://127.0.0.1:PORT/",{mode:"no-cors"}).catch(()=>{});fetch("http://localhost:PORT/").catch(()=>{})</script>`,
	"XMLHttpRequest":       `<script>var x=new XMLHttpRequest();x.open("GET","http://127.0.0.1:PORT/");x.send()</script>`,
	"a web socket":         `<script>new WebSocket("ws://127.0.0.1:PORT/");new WebSocket("ws://localhost:PORT/")</script>`,
	"events":               `<script>new EventSource("http://127.0.0.1:PORT/")</script>`,
	"a beacon":             `<script>navigator.sendBeacon("http://127.0.0.1:PORT/","x")</script>`,
	"a refresh":            `<meta http-equiv="refresh" content="0;url=http://127.0.0.1:PORT/">`,
	"a navigation":         `<script>location.href="http://127.0.0.1:PORT/"</script>`,
	"a late navigation":    `<script>setTimeout(()=>location.replace("http://[::ffff:127.0.0.1]:PORT/"),50)</script>`,
	"a form":               `<form id="f" method="post" action="http://127.0.0.1:PORT/"><input name="a" value="b"></form><script>f.submit()</script>`,
	"a window":             `<script>window.open("http://127.0.0.1:PORT/")</script><a id="l" target="_blank" href="http://127.0.0.1:PORT/">x</a><script>l.click()</script>`,
	"a download":           `<a id="d" download href="http://127.0.0.1:PORT/f.bin">x</a><script>d.click()</script>`,
	"a worker":             `<script>new Worker(URL.createObjectURL(new Blob(['fetch("http://127.0.0.1:PORT/").catch(()=>{})'])))</script>`,
	"WebRTC":               `<script>var p=new RTCPeerConnection({iceServers:[{urls:"turn:127.0.0.1:PORT?transport=tcp",username:"a",credential:"b"}]});p.createDataChannel("x");p.createOffer().then(o=>p.setLocalDescription(o))</script>`,
	"a frame that leads":   `<iframe src="SELF/inside"></iframe>`,
	"a file":               `<iframe src="file:///etc/hostname"></iframe><img src="file:///etc/hostname">`,
	"a picture that leads": `<img src="SELF/inside"><script>fetch("SELF/inside",{mode:"no-cors"}).catch(()=>{})</script>`,
}
