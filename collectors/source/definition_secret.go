package source

import (
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
)

// Secret says how requests carry an API key of the operator. The key is in a file, never in a definition.
type Secret struct {
	Name   string // of the key; lower case letters, digits and hyphens
	Header string // header of each request that has the key
	Scheme string // word before the key, such as Bearer; "" = none
}

// OAuth2 says how to get a token for the requests, with the client-credentials grant (RFC 6749, section 4.4). The
// client and its secret are sent only to URL, the token only to the addresses of the pages.
type OAuth2 struct {
	URL            string // address of the token endpoint
	ClientID       string // name of the secret that has the id of the client
	ClientSecret   string // name of the secret that has the client's secret
	Scope          string // "" = none
	ClientIDHeader string // header that has the id of the client too; "" = none
}

// SecretNames returns the names of the secrets without which the source can't be fetched.
func (d *Definition) SecretNames() []string {
	switch {
	case d.Secret != nil:
		return []string{d.Secret.Name}
	case d.OAuth2 != nil:
		return []string{d.OAuth2.ClientID, d.OAuth2.ClientSecret}
	}
	return nil
}

// secretHeaders returns the usual headers of API keys. A definition must not have them, because many can read it.
func secretHeaders() []string {
	return []string{"Api-Key", "Apikey", "Authorization", "Ocp-Apim-Subscription-Key", "X-Access-Token", "X-Api-Key"}
}

// secrets reads the keys secret and oauth2.
func (o *object) secrets(d *Definition) {
	const hint = "; name a file of --source-secrets"
	o.part("secret", func(part *object) {
		d.Secret = &Secret{
			Name: part.Required("name", hint, part.id), Header: part.Required("header", "", part.headerName), Scheme: part.shortText("scheme"),
		}
		if d.Secret.Scheme != "" && !isToken(d.Secret.Scheme) {
			part.Errorf("scheme is not a word; write Bearer, without a blank")
		}
	})
	o.part("oauth2", func(part *object) {
		d.OAuth2 = &OAuth2{
			URL:      part.Required("url", "", func(key string) string { return part.address(key, d) }),
			ClientID: part.Required("clientId", hint, part.id), ClientSecret: part.Required("clientSecret", hint, part.id),
			Scope: part.shortText("scope"), ClientIDHeader: part.headerName("clientIdHeader"),
		}
	})
}

// headerName reads the name of a header that fetch does not set itself. It returns "" if the key is missing.
func (o *object) headerName(key string) string {
	name := textproto.CanonicalMIMEHeaderKey(o.shortText(key))
	if name != "" && (!isToken(name) || slices.Contains(reservedHeaders(), name)) {
		o.Errorf("%s: %.40q can't be set; use the header that the site documents, such as X-Api-Key", key, name)
	}
	return name
}

// checkSecrets reports an error if a secret could be sent unprotected, or to another site.
func (o *object) checkSecrets(d *Definition) {
	if d.SecretNames() == nil {
		return
	}
	addresses := []string{}
	if d.OAuth2 != nil {
		addresses = append(addresses, d.OAuth2.URL)
		if d.Secret != nil {
			o.Errorf("has secret and oauth2; keep one")
		}
	}
	for i := range d.Pages {
		for j := range d.Pages[i].Requests {
			request := &d.Pages[i].Requests[j]
			if request.AddressFrom != nil {
				o.Errorf("pages[%d].requests[%d] takes its address from a page, which could send the secret elsewhere; write its url", i, j)
			}
			addresses = append(addresses, request.URL)
		}
	}
	for _, text := range addresses {
		if address, err := url.Parse(text); err == nil && address.Host != "" && !MayCarrySecret(address, d.Proxy) {
			o.Errorf("a secret is never sent to %s; use https, or an address of this machine without a proxy", text)
		}
	}
}

// MayCarrySecret reports whether a request may carry a secret: with TLS, or directly to an address of this machine.
func MayCarrySecret(address *url.URL, proxy string) bool {
	ip, err := netip.ParseAddr(address.Hostname())
	return address.Scheme == "https" || proxy == "" && err == nil && ip.IsLoopback()
}
