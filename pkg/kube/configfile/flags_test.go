// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-base/cli/flag"
)

func flagsOf(s *settings, on *bool) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringSliceVar(&s.Names, "names", s.Names, "Names.")
	flags.IntVar(&s.Serving.SecurePort, "secure-port", s.Serving.SecurePort, "Port.")
	flags.BoolVar(on, "on", *on, "On.")
	Override(flags, "names", "names")
	return flags
}

func TestReplay_OverridesOnlyWithGivenFlags(t *testing.T) {
	var on bool
	first := flagsOf(defaults(), &on)
	recorder := Record(first)
	if err := first.Parse([]string{"--names=x", "--on", "--names=y,z"}); err != nil {
		t.Fatal(err)
	}
	s, on := defaults(), false
	s.Serving.SecurePort = 1
	if err := recorder.Replay(flagsOf(s, &on)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y", "z"}, s.Names); diff != "" || s.Serving.SecurePort != 1 || !on {
		t.Errorf("got port %d, on %t, names (-want +got):\n%s", s.Serving.SecurePort, on, diff)
	}
}

func TestExplain_NamesFlagsOfFields(t *testing.T) {
	var on bool
	sections := flag.NamedFlagSets{FlagSets: map[string]*pflag.FlagSet{"all": flagsOf(defaults(), &on)}}
	err := Explain(field.ErrorList{field.Required(field.NewPath("names").Index(1), "x"), field.Required(field.NewPath("serving"), "y")}, sections)
	if want := "names[1] (--names): Required value: x\nserving: Required value: y"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := Explain(nil, sections); err != nil {
		t.Error(err)
	}
	if usage := flagsOf(defaults(), &on).Lookup("names").Usage; !strings.Contains(usage, "Overrides names of --config.") {
		t.Errorf("the usage is %q", usage)
	}
}
