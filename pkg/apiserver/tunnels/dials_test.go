// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestDials_ReviewsCreateOnDialOfTheMember(t *testing.T) {
	attributes := dialOf("u", []string{"g"}, "m").(authorizer.AttributesRecord)
	got := []string{attributes.Verb, attributes.APIGroup, attributes.Resource, attributes.Subresource, attributes.Name, attributes.User.GetName()}
	if diff := cmp.Diff([]string{"create", "tunnel.fleetgate.io", "tunnels", "dial", "m", "u"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"g", "system:authenticated"}, attributes.User.GetGroups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
