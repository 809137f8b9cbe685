// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package paths has the URL paths of members and of views of many, and the syntax of a view's
// name. Clients use it without linking the API server.
package paths

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// Member begins the path of every request about one ClusterGateway on the hub's API server. The
	// member's name follows, then /proxy and the path on the member.
	Member = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"
	// MemberEndpoint begins the same path at the gateway's own endpoint, where no /proxy is needed.
	// Clients that use it do not send their traffic through the hub's API server.
	MemberEndpoint = "/clusters/"
	// View begins the path of every request for a view. The view's name follows, then /proxy and the
	// path on the members.
	View = "/apis/cluster.core.oam.dev/v1alpha1/fleetviews/"
	// ViewEndpoint begins the same path at the gateway's own endpoint, where no /proxy is needed.
	ViewEndpoint = "/fleets/"
)

const (
	// selectorPrefix begins the name of a view that is a label selector. No object's name contains
	// a colon.
	selectorPrefix = "labels:"
	// qualifiedPrefix is the same for a view that qualifies names.
	qualifiedPrefix = "qualified:"
)

// ViewSelector is a view that its name describes.
type ViewSelector struct {
	// Members selects members by their labels.
	Members labels.Selector
	// Qualified says that names of objects begin with the member's.
	Qualified bool
}

// ParseViewSelector reads the name of a view that is a label selector. It returns nil for the name
// of a FleetView.
func ParseViewSelector(name string) (*ViewSelector, error) {
	for _, prefix := range []string{selectorPrefix, qualifiedPrefix} {
		text, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		// A slash would end the name: in selectors there is no other colon.
		selector, err := labels.Parse(strings.ReplaceAll(text, ":", "/"))
		if err != nil {
			return nil, fmt.Errorf("the view %q is not a label selector (write a colon for the slash in a key): %w", name, err)
		}
		return &ViewSelector{Members: selector, Qualified: prefix == qualifiedPrefix}, nil
	}
	return nil, nil
}

// ValidateView checks the syntax of a view's name. It does not look for the FleetView.
func ValidateView(name string) error {
	if selector, err := ParseViewSelector(name); selector != nil || err != nil {
		if strings.Contains(name, "/") {
			return fmt.Errorf("the view %q has a slash: write a colon for that of a label's key", name)
		}
		return err
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("%q is neither the name of a FleetView nor %sSELECTOR: %s", name, selectorPrefix, strings.Join(problems, ", "))
	}
	return nil
}
