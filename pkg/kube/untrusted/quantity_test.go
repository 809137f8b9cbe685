// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"fleetgate.io/fleetgate/test/support/bomb"
)

// hostileQuantities would make an unlimited parser compute for minutes.
var hostileQuantities = []string{
	"1e-999999999", "1E-99999999", "-1e-2147483648", "1e-0999999999", "9e999999999", "1e+99999999", ".1e-99999999",
	strings.Repeat("9", 1<<20), "0." + strings.Repeat("1", 1<<20), strings.Repeat("0", 100) + "1",
}

func TestQuantity_RefusesBillionDigits(t *testing.T) {
	for _, text := range hostileQuantities {
		bomb.Check(t, func() {
			quantity, err := Quantity(text)
			if limit := (*LimitError)(nil); !errors.As(err, &limit) {
				t.Errorf("%.20q is read as %s, with error %v", text, quantity.String(), err)
			}
		})
	}
}

func TestQuantity_HasMeaningOfKubernetes(t *testing.T) {
	for _, text := range []string{
		"0", "4", "-4", "+4", ".5", "4.", "1.5Gi", "250m", "3n", "7u", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Ti", "1Pi", "1Ei", "1e3", "1E3", "1e-3", "1e+3", "9e999",
		"9223372036854775807", "99999999999999999999999", "123456789.123456789",
	} {
		want := resource.MustParse(text)
		if got, err := Quantity(text); err != nil || got.String() != want.String() || got.Cmp(want) != 0 {
			t.Errorf("%s is %s, %v, and %s to Kubernetes", text, got.String(), err, want.String())
		}
	}
	for _, text := range []string{"", "many", "1e", "1e1.5", "1ee3", "1Zi", "--1"} {
		if got, err := Quantity(text); err == nil {
			t.Errorf("%q is read as %s", text, got.String())
		}
	}
}

// A quantity within the limits is parsed as Kubernetes parses it.
func FuzzQuantity(f *testing.F) {
	for _, text := range append([]string{"1.5Gi", "-250m", "1e3", "9E-999", "1Ei"}, hostileQuantities[:7]...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Quantity(text)
		if limit := (*LimitError)(nil); errors.As(err, &limit) {
			return
		}
		want, wantErr := resource.ParseQuantity(text)
		if (err == nil) != (wantErr == nil) || got.Cmp(want) != 0 {
			t.Fatalf("%q is %s, %v, and %s, %v to Kubernetes", text, got.String(), err, want.String(), wantErr)
		}
	})
}
