package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"syscall"

	"github.com/tasard/tasard/collectors/source"
)

// sharedAddresses are addresses behind providers' NAT (RFC 6598), not reachable from outside.
var sharedAddresses = netip.MustParsePrefix("100.64.0.0/10")

// dialPublic returns the dial function for a source if Config.Dial is nil. It connects only to public addresses, so
// that neither a site's DNS nor a redirect can direct requests into the operator's network. An IP address in a URL of
// the definition is allowed too. With a proxy, the node connects only to the proxy.
func dialPublic(d *source.Definition) func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Proxy != "" { // named by the operator; all connections go there
		return new(net.Dialer).DialContext
	}
	named := map[netip.Addr]bool{}
	for i := range d.Pages {
		for _, request := range d.Pages[i].Requests {
			if location, err := url.Parse(request.URL); err == nil {
				if addr, err := netip.ParseAddr(location.Hostname()); err == nil {
					named[addr.Unmap()] = true
				}
			}
		}
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if addr := to.Addr().Unmap().WithZone(""); err != nil || !isPublic(addr) && !named[addr] {
			return fmt.Errorf("%s is not a public address; a source in your own network needs the address itself in the url of its definition", address)
		}
		return nil
	}}
	return dialer.DialContext
}

func isPublic(addr netip.Addr) bool {
	return addr.IsGlobalUnicast() && !addr.IsPrivate() && !sharedAddresses.Contains(addr)
}
