package fetch

import (
	"net"
	"net/url"
	"strings"

	"github.com/tasard/tasard/collectors/source"
)

// refuseAddress says why an address that a page names, by a redirect or an attribute, is not gone to; "" = it may be. The rules are the
// same for both: the same site, no way back from https to http, no port of its own choice, no name and password.
func refuseAddress(from, to *url.URL) string {
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return "it is no address of the web"
	case to.Hostname() == "":
		return "it names no host"
	case to.User != nil:
		return "it carries a name and password"
	case from.Scheme == "https" && to.Scheme == "http":
		return "it goes from https to http, where anybody can change what comes"
	case !sameSite(hostName(from), hostName(to)):
		return "it is another site than " + hostName(from)
	case !isDefaultPort(to) && !(hostName(from) == hostName(to) && port(from) == port(to)):
		return "it goes to a port of its own choice"
	default:
		return ""
	}
}

// sameSite reports that two hosts share a registrable domain. Addresses in digits have none: they must be equal.
func sameSite(a, b string) bool {
	if a == b {
		return true
	}
	return net.ParseIP(a) == nil && net.ParseIP(b) == nil && source.Site(a) == source.Site(b)
}

// hostName is the host as names are compared: small letters, no dot at the end.
func hostName(address *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(address.Hostname()), ".")
}

// port is the port in use, also when the address leaves it out.
func port(address *url.URL) string {
	switch {
	case address.Port() != "":
		return address.Port()
	case address.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}

func isDefaultPort(address *url.URL) bool {
	return port(address) == port(&url.URL{Scheme: address.Scheme})
}

// origin is what a robots.txt speaks for (RFC 9309, 2.3).
func origin(address *url.URL) *url.URL {
	return &url.URL{Scheme: address.Scheme, Host: address.Host}
}
