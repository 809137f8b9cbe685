// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/test/support/bomb"
)

// discoveryOf is a member's discovery with these groups.
func discoveryOf(groups string) []byte {
	return []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + groups + `]}`)
}

// resources are n resources of a group, as an API server describes them.
func resources(n int) string {
	one := `{"resource":"widgets%d","responseKind":{"group":"example.org","version":"v1","kind":"Widget"},"scope":"Namespaced","singularResource":"widget",` +
		`"verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["w"],` +
		`"subresources":[{"subresource":"status","responseKind":{"group":"example.org","version":"v1","kind":"Widget"},"verbs":["get","patch","update"]}]}`
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(one, i)
	}
	return `{"metadata":{"name":"example.org"},"versions":[{"version":"v1","freshness":"Current","resources":[` + strings.Join(all, ",") + `]}]}`
}

func TestDocuments_RefuseDiscoveryThatExpandsToGigabytes(t *testing.T) {
	for name, groups := range map[string]string{
		"groups":       strings.Repeat("{},", maxDocument/3-100) + "{}",
		"versions":     `{"versions":[` + strings.Repeat("{},", maxDocument/3-100) + `{}]}`,
		"resources":    `{"versions":[{"resources":[` + strings.Repeat("{},", maxDocument/3-100) + `{}]}]}`,
		"subresources": `{"versions":[{"resources":[{"subresources":[` + strings.Repeat("{},", maxDocument/3-100) + `{}]}]}]}`,
		"verbs":        `{"versions":[{"resources":[{"verbs":[` + strings.Repeat(`"",`, maxDocument/3-100) + `""]}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			content := discoveryOf(groups)
			bomb.Check(t, func() {
				_, err := newDocuments().read("m", "", content)
				if limit := (*untrusted.LimitError)(nil); !errors.As(err, &limit) {
					t.Errorf("got %v, want a LimitError", err)
				}
			})
		})
	}
	if _, err := newDocuments().read("m", "", discoveryOf(resources(4000))); err != nil {
		t.Errorf("a member with 4,000 kinds: %v", err)
	}
}

// A member can make up any number of documents, each with another ETag.
func TestDocuments_DropThoseThatAMemberMakesUp(t *testing.T) {
	d := newDocuments()
	large := strings.Repeat("{},", 100_000)
	for i := range 12 {
		one, err := d.read("hostile", fmt.Sprint(i), discoveryOf(large+fmt.Sprintf(`{"metadata":{"name":"g%d"}}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		if one.bytes < 100_000*200 {
			t.Fatalf("a hundred thousand groups are taken for %d bytes", one.bytes)
		}
		if sum := d.byContent.Len() * one.bytes; d.size > maxCached || sum > maxCached+one.bytes {
			t.Fatalf("%d documents are kept, which take %d bytes and are counted as %d", d.byContent.Len(), sum, d.size)
		}
	}
	if _, last := d.known("hostile"); last.document == nil {
		t.Error("the last one is not known any more")
	}
	again, err := d.read("other", "", discoveryOf(resources(10)))
	if err != nil {
		t.Fatal(err)
	}
	size := d.size
	if same, err := d.read("third", "", discoveryOf(resources(10))); err != nil || same.document != again.document || d.size != size {
		t.Errorf("equal members have two documents, with error %v, and %d bytes are kept instead of %d", err, d.size, size)
	}
}

func TestDocuments_KeepNoLongETag(t *testing.T) {
	d := newDocuments()
	for _, size := range []int{maxETag, maxETag + 1} {
		member := fmt.Sprint(size)
		if _, err := d.read(member, strings.Repeat("x", size), discoveryOf(resources(1))); err != nil {
			t.Fatal(err)
		}
		if etag, _ := d.known(member); len(etag) > maxETag || size == maxETag && etag == "" {
			t.Errorf("of an ETag of %d bytes, %d are kept", size, len(etag))
		}
	}
}

func TestDocuments_LimitMemoryOfManyHostileMembers(t *testing.T) {
	d, all := newDocuments(), distinct{}
	failed := 0
	for i := range 8 {
		one, err := d.read(fmt.Sprint(i), "", discoveryOf(strings.Repeat("{},", 100_000)+fmt.Sprintf(`{"metadata":{"name":"g%d"}}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		if all.add(one) != nil {
			failed++
		}
	}
	if all.bytes > maxCached || failed == 0 || len(all.documents) == 0 {
		t.Errorf("%d of 8 documents are refused, the others take %d bytes", failed, all.bytes)
	}
	one, err := d.read("rightful", "", discoveryOf(resources(10)))
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := all.add(one); err != nil {
			t.Fatalf("equal members do not take more than one: %v", err)
		}
	}
}
