package main

import (
	"bytes"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"
)

func TestSettings(t *testing.T) {
	s, err := readSettings(strings.Fields("-tasard ./tasard -goals f12,F1 -quick -rounds 9 -measure 2s -against http://node/"), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	if o := s.options; o.Rounds != 5 || o.Measure != 400*time.Millisecond || o.Connections != 64 || o.Accounts != 128 || s.against.host != "node:80" {
		t.Errorf("%+v", s)
	}
	list, err := chosen(s.goals)
	if err != nil || len(list) != 2 || list[0].goal != "F1" || list[1].goal != "F12" {
		t.Errorf("%v, %v: want F1, then F12", list, err)
	}
	if all, err := chosen(""); err != nil || len(all) != 12 || len(stages(all, &s.options)) != 12 {
		t.Errorf("%d goals, %v: want 12", len(all), err)
	}
	for line, told := range map[string]string{
		"-goals F13":               "F13",
		"-rounds 0":                "-rounds 0",
		"-accounts 200000":         "-accounts 200000",
		"-mix everything":          "everything",
		"F1":                       `"F1"`,
		"-against ftp://a":         "http://host:port",
		"-against http://a/v1":     "http://host:port",
		"-against http://u:p@a:80": "http://host:port",
		"-speed 3":                 "-speed",
	} {
		s, err := readSettings(strings.Fields(line), &bytes.Buffer{})
		if err == nil {
			_, err = chosen(s.goals)
		}
		if err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%s: %v, want something about %s", line, err, told)
		}
	}
	var out bytes.Buffer
	if _, err := readSettings([]string{"-help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "bench -tasard ./tasard") {
		t.Errorf("-help: %v, %s", err, out.String())
	}
}
