// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type settings struct {
	metav1.TypeMeta `json:",inline"`

	Names   []string `json:"names"`
	Serving struct {
		SecurePort int             `json:"securePort"`
		Timeout    metav1.Duration `json:"timeout"`
	} `json:"serving"`
}

var kind = metav1.TypeMeta{Kind: "Settings", APIVersion: "test/v1"}

const header = "apiVersion: test/v1\nkind: Settings\n"

func defaults() *settings {
	s := &settings{TypeMeta: kind, Names: []string{"a", "b"}}
	s.Serving.SecurePort, s.Serving.Timeout.Duration = 8443, time.Minute
	return s
}

func TestDecode_KeepsDefaultsOfOmittedFields(t *testing.T) {
	got, want := defaults(), defaults()
	if err := Decode([]byte(header+"names: [c]\nserving: {timeout: 5s}\n"), kind, got); err != nil {
		t.Fatal(err)
	}
	want.Names, want.Serving.Timeout.Duration = []string{"c"}, 5*time.Second
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecode_RejectsWhatItDoesNotKnow(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"typing error":        {header + "nams: [c]\nserving: {securPort: 1}\n", []string{`unknown field "nams": did you mean names?`, `unknown field "serving.securPort": did you mean serving.securePort?`}},
		"another section":     {header + "securePort: 1\n", []string{`unknown field "securePort": did you mean serving.securePort?`}},
		"similar to nothing":  {header + "qwertyuiop: 1\n", []string{`unknown field "qwertyuiop"`}},
		"wrong type":          {header + "serving: {securePort: one}\n", []string{"serving.securePort"}},
		"another kind":        {"apiVersion: test/v1\nkind: Other\n", []string{`it is kind "Other" of apiVersion "test/v1": use kind Settings of apiVersion test/v1`}},
		"no kind":             {"names: [a]\n", []string{"use kind Settings"}},
		"the same name twice": {header + "names: [a]\nnames: [b]\n", []string{"line 4"}},
		"a list":              {"- a\n", []string{"cannot unmarshal array"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Decode([]byte(tt.text), kind, defaults())
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

func TestLoad_NamesTheFile(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, make([]byte, limits.Bytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/nowhere/config.yaml": "no such file", large: "more than"} {
		if err := Load(path, kind, defaults()); err == nil || !strings.Contains(err.Error(), "--config "+path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestFields_HasEveryPath(t *testing.T) {
	want := []string{"kind", "apiVersion", "names", "serving", "serving.securePort", "serving.timeout"}
	if diff := cmp.Diff(want, Fields(&settings{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
