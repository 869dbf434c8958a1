package acme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"golang.org/x/crypto/acme"
)

// obtain orders a certificate with a new key and stores it.
func (m *Manager) obtain(ctx context.Context) (*tls.Certificate, error) {
	client := &acme.Client{Key: m.accountKey, HTTPClient: m.config.Client, DirectoryURL: m.config.Authority, UserAgent: m.config.UserAgent}
	if _, err := client.Register(ctx, &acme.Account{}, acme.AcceptTOS); err != nil && !errors.Is(err, acme.ErrAccountAlreadyExists) {
		return nil, fmt.Errorf("register an account: %w", err)
	}
	order, err := client.AuthorizeOrder(ctx, acme.DomainIDs(m.config.Name))
	if err != nil {
		return nil, fmt.Errorf("order a certificate: %w", err)
	}
	for _, address := range order.AuthzURLs {
		if err := m.authorize(ctx, client, address); err != nil {
			return nil, fmt.Errorf("prove that port 80 of %s leads to this node: %w", m.config.Name, err)
		}
	}
	if order, err = client.WaitOrder(ctx, order.URI); err != nil {
		return nil, fmt.Errorf("await the order: %w", err)
	}
	key, chain, err := m.finalize(ctx, client, order)
	if err != nil {
		return nil, fmt.Errorf("get the certificate: %w", err)
	}
	text, err := encodeCertificate(key, chain)
	if err != nil {
		return nil, err
	}
	if err := replaceFile(m.certificatePath(), text); err != nil {
		// The certificate is used nevertheless: authorities issue only a few for one name in a week.
		m.config.Logger.Error("the certificate can't be stored: the next start needs another one", "cause", err.Error())
	}
	return parseCertificate(text, m.config.Name)
}

// finalize sends the public key of the certificate, and returns its private key and chain.
func (m *Manager) finalize(ctx context.Context, client *acme.Client, order *acme.Order) (key crypto.Signer, chain [][]byte, err error) {
	key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{DNSNames: []string{m.config.Name}}, key)
	if err != nil {
		return nil, nil, err
	}
	chain, _, err = client.CreateCertFromOrder(ctx, order, request, true)
	return key, chain, err
}

// authorize proves to the authority that this node owns the name. If the proof of an earlier order is still valid, it
// does nothing.
func (m *Manager) authorize(ctx context.Context, client *acme.Client, address string) error {
	authorization, err := client.GetAuthorization(ctx, address)
	if err != nil || authorization.Status == acme.StatusValid {
		return err
	}
	for _, challenge := range authorization.Challenges {
		if challenge.Type != "http-01" {
			continue
		}
		response, err := client.HTTP01ChallengeResponse(challenge.Token)
		if err != nil {
			return err
		}
		path := client.HTTP01ChallengePath(challenge.Token)
		m.setToken(path, response)
		defer m.setToken(path, "")
		if _, err := client.Accept(ctx, challenge); err != nil {
			return err
		}
		_, err = client.WaitAuthorization(ctx, address)
		return err
	}
	return errors.New("the authority does not offer the challenge http-01")
}
