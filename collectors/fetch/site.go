package fetch

import (
	"net"
	"net/url"
	"strings"

	"github.com/tasard/tasard/collectors/source"
)

// refuseAddress returns why an address named by a page, in a redirect or an attribute, is not requested; "" = it is.
// It must be on the same site, on its default port or the same one, without credentials, and must not leave https.
func refuseAddress(from, to *url.URL) string {
	switch {
	case to.Scheme != "http" && to.Scheme != "https":
		return "it is not a web address"
	case to.Hostname() == "":
		return "it names no host"
	case to.User != nil:
		return "it carries a name and password"
	case from.Scheme == "https" && to.Scheme == "http":
		return "it goes from https to http, which is not protected"
	case !sameSite(hostName(from), hostName(to)):
		return "it is another site than " + hostName(from)
	case !isDefaultPort(to) && (hostName(from) != hostName(to) || port(from) != port(to)):
		return "it goes to another port"
	default:
		return ""
	}
}

// sameSite reports whether two hosts share a registrable domain. IP addresses must be equal.
func sameSite(a, b string) bool {
	return a == b || net.ParseIP(a) == nil && net.ParseIP(b) == nil && source.Site(a) == source.Site(b)
}

// hostName returns the host in the form in which hosts are compared: lower case, without a final dot.
func hostName(address *url.URL) string {
	return strings.TrimSuffix(strings.ToLower(address.Hostname()), ".")
}

// port returns the port of an address, or the default of its scheme.
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

// origin returns the scheme and host that a robots.txt applies to (RFC 9309, section 2.3).
func origin(address *url.URL) *url.URL {
	return &url.URL{Scheme: address.Scheme, Host: address.Host}
}
