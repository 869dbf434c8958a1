package fetch

import (
	"net"
	"net/url"
	"strings"

	"github.com/tasard/tasard/collectors/source"
)

// addressProblem returns the reason why a request to target is forbidden, or "". base is the address of the page or
// redirect that refers to target. target must be on the same site, and must not go from https to http. Its port must be
// the scheme's default, or base must have the same host and port. It must not contain a user name or password.
func addressProblem(base, target *url.URL) string {
	switch {
	case target.Scheme != "http" && target.Scheme != "https":
		return "it is not a web address"
	case target.Hostname() == "":
		return "it names no host"
	case target.User != nil:
		return "it carries a name and password"
	case base.Scheme == "https" && target.Scheme == "http":
		return "it goes from https to http, which is not protected"
	case !sameSite(hostName(base), hostName(target)):
		return "it is another site than " + hostName(base)
	case !isDefaultPort(target) && (hostName(base) != hostName(target) || port(base) != port(target)):
		return "it goes to another port"
	default:
		return ""
	}
}

// sameSite reports whether two hosts have the same registrable domain, or are the same IP address.
func sameSite(a, b string) bool {
	return a == b || net.ParseIP(a) == nil && net.ParseIP(b) == nil && source.Site(a) == source.Site(b)
}

// hostName returns the host in normal form: lower case, without a final dot.
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
