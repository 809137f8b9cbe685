// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestVersions_AreReadableByAnyReplica(t *testing.T) {
	var members []string
	v := versions{}
	for i := range 1000 {
		members = append(members, fmt.Sprintf("m%03d", i))
		if i%7 > 0 {
			v.set(members[i], fmt.Sprint(1_000_000_000+i))
		}
	}
	v.set("m000", "opaque")
	text := v.encode(members)
	t.Logf("the version of %d members has %d bytes", len(members), len(text))
	if len(text) > 9<<10 {
		t.Errorf("the version has %d bytes", len(text))
	}
	got, err := decodeVersions(text, members)
	if diff := cmp.Diff(v, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := decodeVersions(text, members[1:]); !apierrors.IsResourceExpired(err) {
		t.Errorf("of other members: %v", err)
	}
	if _, err := decodeVersions("12345", members); !apierrors.IsResourceExpired(err) {
		t.Errorf("of an object: %v", err)
	}
	for _, bad := range []string{"v1.", "v1.!!", text[:len(text)-8], "v1.AAAA"} {
		if _, err := decodeVersions(bad, members); !apierrors.IsBadRequest(err) && !apierrors.IsResourceExpired(err) {
			t.Errorf("%.20s...: %v", bad, err)
		}
	}
}
