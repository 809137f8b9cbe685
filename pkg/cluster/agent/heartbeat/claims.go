// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Bounds of what a member says of itself: what is beyond is left out.
const (
	maxClaims           = 100
	maxClaimValueLength = 1024
	// maxListed is how many objects of a kind are looked at.
	maxListed = 1000
)

const (
	// claimsSettle is how long changes of claims are gathered.
	claimsSettle = 200 * time.Millisecond
	// claimsPause is the least time between two reports that claims cause.
	claimsPause = 5 * time.Second
	// claimsRetry is the wait before claims are watched again: most members have not all kinds.
	claimsRetry = 30 * time.Second
)

// spokeOnlyLabel hides a claim from the hub, as Open Cluster Management's users know it.
const spokeOnlyLabel = "open-cluster-management.io/spoke-only"

// claimKinds are where claims are, the ones that win last.
func claimKinds() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "clusterclaims"},
		{Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties"},
		{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"},
	}
}

// Claims has the member reported when what it says of itself changes. Make it with NewClaims, and
// have it Run.
type Claims struct {
	*notice
	member metadata.Interface
}

// NewClaims looks at the member that the client reaches.
func NewClaims(member metadata.Interface, clock clock.WithDelayedExecution) *Claims {
	return &Claims{member: member, notice: newNotice(clock, claimsSettle, claimsPause)}
}

// Run watches claims until ctx ends. Kinds that are not there yet, or may not be watched, are
// tried again now and then; each heartbeat reads claims in any case.
func (c *Claims) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, kind := range claimKinds() {
		watching.Go(func() { c.follow(ctx, c.member.Resource(kind), claimsRetry) })
	}
	watching.Wait()
	return nil
}

// collectClaims reads the ClusterClaims and ClusterProperties of the member, whichever
// of these kinds it has.
func collectClaims(ctx context.Context, member kubernetes.Interface) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	claims := map[string]string{}
	for _, kind := range claimKinds() {
		path := fmt.Sprintf("/apis/%s/%s/%s", kind.Group, kind.Version, kind.Resource)
		raw, err := member.Discovery().RESTClient().Get().AbsPath(path).Param("limit", strconv.Itoa(maxListed)).Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", path, err)
		}
		if err := addClaims(claims, raw); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return bounded(claims), nil
}

// bounded are so many claims as are told: the reserved ones, then of the others the first by name,
// so that it is the same ones each time that are left out.
func bounded(claims map[string]string) map[string]string {
	first := slices.DeleteFunc(clusterv1.ReservedClaims(), func(name string) bool { _, ok := claims[name]; return !ok })
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(claims)), func(name string) bool { return slices.Contains(first, name) })
	for _, name := range others[min(len(others), maxClaims-len(first)):] {
		delete(claims, name)
	}
	return claims
}

// claim is what ClusterClaim and ClusterProperty have in common.
type claim struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Value string `json:"value"`
	} `json:"spec"`
}

// addClaims takes what a list in JSON has of claims that can be told.
func addClaims(claims map[string]string, list []byte) error {
	var content struct {
		Items []claim `json:"items"`
	}
	if err := json.Unmarshal(list, &content); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	for _, c := range content.Items {
		_, hidden := c.Metadata.Labels[spokeOnlyLabel]
		usable := c.Spec.Value != "" && len(c.Spec.Value) <= maxClaimValueLength && !strings.Contains(c.Metadata.Name, "/")
		if hidden || !usable {
			continue
		}
		claims[c.Metadata.Name] = c.Spec.Value
	}
	return nil
}
