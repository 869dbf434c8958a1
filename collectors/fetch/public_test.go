package fetch

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/tasard/tasard/collectors/source"
)

// TestD4_PublicAddresses: without a Dial of its own a client connects to no address of the operator's network, unless a
// URL of the definition has it.
func TestD4_PublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"200.88.1.1": true, "2800:1::1": true, "::ffff:200.88.1.1": true, "127.0.0.1": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "224.0.0.1": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:127.0.0.1": false,
	} {
		if got := isPublic(netip.MustParseAddr(text).Unmap()); got != want {
			t.Errorf("%s: public %t", text, got)
		}
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, test := range []struct {
		address, proxy string
		want           bool
	}{
		{"http://127.0.0.1:1/rates", "", true}, {"https://bank.example.do/rates", "", false},
		{"https://bank.example.do/rates", "http://127.0.0.1:3128", true},
	} {
		d := definitionOf(source.Request{Method: "GET", URL: test.address})
		d.Proxy = test.proxy
		conn, err := dialPublic(d)(t.Context(), "tcp", ln.Addr().String())
		if (err == nil) != test.want || err != nil && !strings.Contains(err.Error(), "is not a public address") {
			t.Errorf("a definition with %s, proxy %q: %v", test.address, test.proxy, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
