package cmd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/tasard/tasard/collectors/source"
	"github.com/tasard/tasard/engine"
)

// hangUps are the SIGHUPs of the process until release: serve reads its files again.
func hangUps() (wanted <-chan os.Signal, release func()) {
	signals := make(chan os.Signal, 1) // one that comes while files are read makes it read them once more
	signal.Notify(signals, syscall.SIGHUP)
	return signals, func() { signal.Stop(signals) }
}

// reload is what serve may read again while it runs.
type reload struct {
	options     *serveOptions
	credentials string
	service     *service
	notifier    *notifier
	log         *slog.Logger
}

// newer is what the files say now. All of it is good, or none of it is taken.
type newer struct {
	set      *source.Set      // nil: as it was
	pair     *tls.Certificate // nil: there is none
	password *engine.Secret   // nil: there is none
	changes  []string
}

// serve reloads with each hang-up until the node is to stop.
func (r *reload) serve(ctx context.Context, wanted <-chan os.Signal) error {
	for {
		again, err := await(ctx, r.service, wanted)
		if !again {
			return err
		}
		r.notifier.reloading()
		r.once(ctx)
		r.notifier.ready(r.service.status())
	}
}

// once reads the files and takes what they say. What is wrong with them goes to the log, and all stays as it was.
func (r *reload) once(ctx context.Context) {
	found, err := r.read()
	if err != nil {
		for problem := range strings.SplitSeq(err.Error(), "\n") {
			r.log.Error("reload: " + problem)
		}
		r.log.Error("nothing was reloaded: the node goes on as before; mend that and send SIGHUP again")
		return
	}
	if found.pair != nil {
		r.service.certificate.pair.Store(found.pair)
		r.service.certificate.warn(r.log, r.service.management.clock())
	}
	if found.password != nil {
		r.service.post.password = *found.password
		r.service.post.smtp.SetPassword(*found.password)
	}
	if found.set != nil {
		r.service.collection.replace(found.set)
	}
	if len(found.changes) == 0 {
		found.changes = []string{"nothing has changed"}
	}
	r.log.Info("reloaded: " + strings.Join(found.changes, "; "))
}

// read reads everything, so that all problems are told together.
func (r *reload) read() (*newer, error) {
	found := &newer{}
	return found, errors.Join(r.readSources(found), r.readPair(found), r.readPassword(found))
}

func (r *reload) readPair(found *newer) error {
	c := r.service.certificate
	if c == nil {
		return nil
	}
	pair, err := c.read()
	if err != nil {
		return err
	}
	if found.pair = pair; !pair.Leaf.Equal(c.pair.Load().Leaf) {
		found.changes = append(found.changes, "the certificate, valid until "+instant(pair.Leaf.NotAfter))
	}
	return nil
}

func (r *reload) readPassword(found *newer) error {
	post, path := r.service.post, r.options.accounts.smtpPasswordFile
	if post.smtp == nil || path == "" {
		return nil
	}
	password, err := readSecret(path, r.credentials)
	if err != nil {
		return err
	}
	if found.password = &password; password != post.password {
		found.changes = append(found.changes, "the password for the mail server")
	}
	return nil
}

// readSources reads the definitions. How a source is asked and read may change; what rates say of it, and which there are, is part of what
// is kept in memory, and is read at a start alone.
func (r *reload) readSources(found *newer) error {
	known, err := openKnown(r.options.node)
	if err != nil {
		return err
	}
	running := r.service.management.catalogue
	if err := known.set.Check(running); err != nil {
		return fmt.Errorf("%w; institutions and currencies are read at a start: restart the node", err)
	}
	var problems []error
	for _, described := range known.set.Sources() {
		switch now := known.catalogue.Source(described.ID); {
		case !running.HasSource(described.ID):
			problems = append(problems, fmt.Errorf("the source %s is new: restart the node", described.ID))
		case !reflect.DeepEqual(now, running.Source(described.ID)):
			problems = append(problems, fmt.Errorf("what rates say of the source %s (name, address, priority, lifetime, bounds) has changed: restart the node", described.ID))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	if changed := changedDefinitions(r.service.collection.present().set, known.set); len(changed) > 0 {
		found.set = known.set
		found.changes = append(found.changes, "definitions of "+strings.Join(changed, ", "))
	}
	return nil
}

// changedDefinitions are the ids of definitions that two sets don't share.
func changedDefinitions(old, now *source.Set) []string {
	var ids []string
	for _, d := range now.Definitions() {
		if before, known := old.Find(d.ID); !known || !reflect.DeepEqual(before, d) {
			ids = append(ids, d.ID)
		}
	}
	for _, d := range old.Definitions() {
		if _, known := now.Find(d.ID); !known {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
