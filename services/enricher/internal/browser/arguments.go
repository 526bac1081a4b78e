package browser

import "strings"

// arguments of a Chromium that keeps its files in profile and reaches the network through proxy alone.
func arguments(profile, proxy string, sandbox bool) []string {
	args := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + profile,

		// Everything goes through the proxy, loopback too, and no name is looked up but by the proxy.
		"--proxy-server=http://" + proxy, "--proxy-bypass-list=<-loopback>", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		// What does not go through a proxy is off.
		"--disable-quic", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		// No calls of its own.
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-domain-reliability",
		"--disable-client-side-phishing-detection", "--no-pings", "--metrics-recording-only", "--disable-breakpad", "--disable-crash-reporter",
		"--no-first-run", "--no-default-browser-check", "--no-service-autorun", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=" + strings.Join([]string{
			"Translate", "MediaRouter", "DialMediaRouteProvider", "OptimizationHints", "AutofillServerCommunication", "CertificateTransparencyComponentUpdater",
			"WebRtcHideLocalIpsWithMdns", "WebTransport", "DnsOverHttps", "AsyncDns", "WebUSB", "WebBluetooth", "Prerender2", "NetworkPrediction",
			// A page that goes back loads what it goes to, instead of being shown as it was without an event that tells that it is complete.
			"BackForwardCache",
			// The frames of a page share a process. Nothing in a context is secret from another site that has a frame in it.
			"IsolateOrigins", "site-per-process",
		}, ","),
		"--disable-site-isolation-trials",
		// Nothing beside the text of a page.
		"--disable-extensions", "--disable-component-extensions-with-background-pages", "--block-new-web-contents", "--disable-notifications",
		"--deny-permission-prompts", "--disable-file-system", "--disable-gpu", "--disable-software-rasterizer", "--disable-3d-apis", "--mute-audio",
		"--disable-remote-fonts", "--blink-settings=imagesEnabled=false", "--hide-scrollbars", "--disable-speech-api", "--disable-print-preview",
		// A page is shown as if somebody looked at it.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		// Containers have a small /dev/shm.
		"--disable-dev-shm-usage",
	}
	if !sandbox {
		args = append(args, "--no-sandbox")
	}
	return args
}
