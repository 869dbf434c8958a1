package cmd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tasard/tasard/collectors/simulated"
)

// simulate leads the program to simulated institutions at their real addresses, over HTTPS; they end with it.
func (p *commands) simulate(wish string) {
	words := strings.Split(wish, ",")
	seed, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		panic(err)
	}
	market := simulated.NewMarket(seed)
	market.Step(p.Clock())
	site := simulated.NewSite(market)
	for _, word := range words[1:] {
		id, fault, _ := strings.Cut(word, "=")
		if err := site.SetFault(id, simulated.Fault(fault)); err != nil {
			panic(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	config, roots := testAuthority()
	go func() {
		_ = (&http.Server{Handler: site, ReadHeaderTimeout: patience}).Serve(tls.NewListener(listener, config))
	}()
	p.Roots = roots
	p.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
	}
}

// testAuthority returns a configuration with a certificate for every name, and the authority that signs them.
func testAuthority() (*tls.Config, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
	}
	sign := func(subject *x509.Certificate) []byte {
		der, err := x509.CreateCertificate(rand.Reader, subject, template, &key.PublicKey, key)
		if err != nil {
			panic(err)
		}
		return der
	}
	authority, err := x509.ParseCertificate(sign(template))
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		der := sign(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: template.NotBefore, NotAfter: template.NotAfter, DNSNames: []string{hello.ServerName}})
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
	}}, roots
}
