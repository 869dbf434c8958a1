package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine/account"
)

// SourceSecrets maps names to API keys and other secrets of sources. A definition names the secrets of its source.
type SourceSecrets map[string]account.Secret

// ReadSourceSecrets reads the secrets named by definitions. Each is a file in the directory Collect.Secrets. A missing
// file is not an error, but disables the source (Apply).
func (c Config) ReadSourceSecrets(set *source.Set) (SourceSecrets, error) {
	secrets, directory := SourceSecrets{}, c.Collect.Secrets
	if directory == "" {
		return secrets, nil
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, errorf(BadFile, "Collect.Secrets", "%s: not a directory; want one with a file for each secret", directory)
	}
	var problems []error
	for _, d := range set.Definitions() {
		for _, name := range d.SecretNames() {
			path := filepath.Join(directory, name)
			if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) || secrets.has(name) {
				continue
			}
			secret, err := ReadSecret(path, c.Credentials)
			if err != nil {
				problems = append(problems, &Error{BadFile, "Collect.Secrets", err})
			}
			secrets[name] = secret
		}
	}
	return secrets, errors.Join(problems...)
}

func (s SourceSecrets) has(name string) bool {
	_, ok := s[name]
	return ok
}

// Apply returns a set in which sources with missing secrets are disabled.
func (s SourceSecrets) Apply(set *source.Set) *source.Set {
	definitions := slices.Clone(set.Definitions())
	for i, d := range definitions {
		for _, name := range d.SecretNames() {
			if d.Disabled == "" && !s.has(name) {
				disabled := *d
				disabled.Disabled = fmt.Sprintf("It needs the secret %s: a file of this name in the directory of --source-secrets.", name)
				definitions[i] = &disabled
				break
			}
		}
	}
	return source.NewSet(definitions...)
}
