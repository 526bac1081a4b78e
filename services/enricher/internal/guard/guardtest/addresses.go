package guardtest

import "strings"

// Addresses are URLs that must be refused without a connection. Those to loopback lead to the traps of the world.
func (w *World) Addresses() []string {
	all := make([]string, 0, len(hostile))
	for _, text := range hostile {
		all = append(all, strings.ReplaceAll(text, "PORT", w.TrapPort()))
	}
	return all
}

var hostile = []string{
	// Loopback as it is, and in every spelling of IPv4.
	"http://127.0.0.1:PORT/", "http://127.0.0.1.:PORT/", "http://127.1:PORT/", "http://127.0.1:PORT/", "http://2130706433:PORT/",
	"http://0x7f000001:PORT/", "http://0X7F.0.0.1:PORT/", "http://0x7f.1:PORT/", "http://0x7f.0x0.0x0.0x1:PORT/", "http://017700000001:PORT/",
	"http://0177.0.0.1:PORT/", "http://0177.0.0.01:PORT/", "http://00000177.0.0.1:PORT/", "http://0x7f.0.1:PORT/", "http://127.0x1:PORT/",
	"http://127.2130706433:PORT/", "http://127.0.0.0x:PORT/", "http://0x7f.00.0x0.1.:PORT/", "http://127.255.255.254:PORT/", "http://127.0.0.1..:PORT/",
	"http://0:PORT/", "http://0.0.0.0:PORT/", "http://0x0:PORT/", "http://00:PORT/", "http://0.1:PORT/", "http://0x:PORT/", "http://4294967295/",
	"http://4294967296:PORT/", "http://1.2.3.4.5:PORT/", "http://256.256.256.256:PORT/", "http://127.0.0.08:PORT/",
	// Characters that become digits and dots.
	"http://１２７.0.0.1:PORT/", "http://①②⑦.⓪.⓪.①:PORT/", "http://127。0。0。1:PORT/", "http://127．0．0．1:PORT/", "http://127｡0.0.1:PORT/",
	"http://𝟙𝟚𝟟.0.0.1:PORT/", "http://2１30706433:PORT/", "http://%31%32%37.0.0.1:PORT/", "http://127.0.0.%31:PORT/",
	"http://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1:PORT/", "http://127.0.0\u00ad.1:PORT/", "http://127\u200b.0.0.1:PORT/", "http://[::ﬀff:127.0.0.1]:PORT/",
	// Names.
	"http://localhost:PORT/", "http://LOCALHOST:PORT/", "http://localhost.:PORT/", "http://ｌocalhost:PORT/", "http://ℓocalhost:PORT/", "http://loc%61lhost:PORT/",
	"http://no-such-name.invalid/", "http://metadata.google.internal/computeMetadata/v1/", "http://-.:PORT/", "http://.:PORT/", "http://..:PORT/",
	// IPv6: loopback, unspecified, and what holds IPv4.
	"http://[::1]:PORT/", "http://[0:0:0:0:0:0:0:1]:PORT/", "http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/", "http://[::0.0.0.1]:PORT/",
	"http://[::]:PORT/", "http://[::ffff:127.0.0.1]:PORT/", "http://[::ffff:7f00:1]:PORT/", "http://[::FFFF:7F00:0001]:PORT/", "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
	"http://[::127.0.0.1]:PORT/", "http://[::7f00:1]:PORT/", "http://[::ffff:0:127.0.0.1]:PORT/", "http://[::ffff:0.0.0.0]:PORT/", "http://[::ffff:169.254.169.254]/",
	"http://[::ffff:10.0.0.1]/", "http://[64:ff9b::127.0.0.1]:PORT/", "http://[64:ff9b::7f00:1]:PORT/", "http://[64:ff9b:1::127.0.0.1]:PORT/",
	"http://[64:ff9b:1:abcd::1]/", "http://[2002:7f00:1::]:PORT/", "http://[2002:c0a8:101::1]/", "http://[2001:0:7f00:1::]:PORT/", "http://[2001::1]/",
	"http://[::1%25lo]:PORT/", "http://[fe80::1%25eth0]/", "http://[fe80::1]/", "http://[febf::1]/", "http://[fec0::1]/", "http://[feff::1]/", "http://[fc00::1]/",
	"http://[fd00:ec2::254]/latest/meta-data/", "http://[ff02::1]/", "http://[ff0e::1]/", "http://[2001:db8::1]/", "http://[2001:10::1]/", "http://[2001:2::1]/",
	"http://[2001:20::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[100::1]/", "http://[4000::1]/", "http://[::ffff:1:2:3]/", "http://[127.0.0.1]:PORT/",
	// Other blocks of IPv4.
	"http://10.0.0.1/", "http://10.255.255.255/", "http://167772161/", "http://012.0.0.1/", "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.0.1/",
	"http://192.168.257/", "http://0xc0a80101/", "http://169.254.169.254/latest/meta-data/", "http://2852039166/latest/", "http://0xa9fea9fe/", "http://0251.0376.0251.0376/",
	"http://169.254.43518/", "http://100.64.0.1/", "http://100.100.100.200/latest/meta-data/", "http://100.127.255.255/", "http://192.0.0.192/opc/v2/",
	"http://192.0.0.1/", "http://192.0.2.1/", "http://198.51.100.1/", "http://203.0.113.1/", "http://192.88.99.1/", "http://198.18.0.1/", "http://198.19.255.255/",
	"http://224.0.0.1/", "http://239.255.255.255/", "http://240.0.0.1/", "http://255.255.255.255/", "http://168.63.129.16/machine/",
	// Addresses that say one thing and mean another, and no addresses of the web.
	"http://user@127.0.0.1:PORT/", "http://page.example.com@127.0.0.1:PORT/", "http://page.example.com:80@127.0.0.1:PORT/", "http://user:pass@page.example.com/",
	"http://127.0.0.1:PORT#@page.example.com/", "http://127.0.0.1:PORT?@page.example.com/", "http://127.0.0.1:PORT\\@page.example.com/",
	"http://page.example.com\\@127.0.0.1:PORT/", "http:\\\\127.0.0.1:PORT/", "http:/127.0.0.1:PORT/", "http:127.0.0.1:PORT/", "http:///127.0.0.1:PORT/", "//127.0.0.1:PORT/",
	"http://@127.0.0.1:PORT/", "http://page.example.com:80:PORT/", "http://127.0.0.1:PORT\r\nHost: page.example.com/", "http://127.0.0.1 :PORT/", "http://127.0.0.1\t:PORT/",
	"http://127.0.0.1%00.page.example.com:PORT/", "http://127.0.0.1%2f@page.example.com/", "http://[::1:PORT/", "http://::1:PORT/", "http://[v1.127.0.0.1]:PORT/",
	"file:///etc/hostname", "FILE:///etc/hostname", "ftp://127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/_GET%20/", "dict://127.0.0.1:PORT/d", "ldap://127.0.0.1:PORT/",
	"ws://127.0.0.1:PORT/", "wss://page.example.com/", "jar:http://127.0.0.1:PORT!/", "view-source:http://127.0.0.1:PORT/", "data:text/html,hello", "javascript:alert(1)", "about:blank",
	"chrome://version", "blob:http://127.0.0.1:PORT/1", "unix:///run/docker.sock", "http+unix://%2Frun%2Fdocker.sock/info", "http://", "https://", "http://:PORT/", "http://?", "", " ", "127.0.0.1:PORT",
	// Public hosts, but ports that speak no HTTP.
	"http://page.example.com:0/", "http://page.example.com:22/", "http://page.example.com:25/", "http://page.example.com:465/", "https://page.example.com:587/",
	"http://page.example.com:65536/", "http://page.example.com:-1/", "http://page.example.com:0x50/", "http://page.example.com:+80/",
}
