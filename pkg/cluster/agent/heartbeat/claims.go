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

// Limits of a member's claims: excess claims are dropped.
const (
	maxClaims           = 100
	maxClaimValueLength = 1024
	// maxListed limits the objects read per kind.
	maxListed = 1000
)

const (
	// claimsSettle is how long changes of claims are collected.
	claimsSettle = 200 * time.Millisecond
	// claimsPause is the minimum interval between two reports because of claims.
	claimsPause = 5 * time.Second
	// claimsRetry is the delay before a watch is retried: most members do not have all kinds.
	claimsRetry = 30 * time.Second
)

// spokeOnlyLabel hides a claim from the hub, as in OCM.
const spokeOnlyLabel = "open-cluster-management.io/spoke-only"

// claimKinds are the resources of claims, in increasing priority.
func claimKinds() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Group: "cluster.open-cluster-management.io", Version: "v1alpha1", Resource: "clusterclaims"},
		{Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties"},
		{Group: "about.k8s.io", Version: "v1beta1", Resource: "clusterproperties"},
	}
}

// Claims triggers a report when the member's claims change. Create it with NewClaims, and call Run.
type Claims struct {
	*notice
	member metadata.Interface
}

// NewClaims returns the Claims of the client's member.
func NewClaims(member metadata.Interface, clock clock.WithDelayedExecution) *Claims {
	return &Claims{member: member, notice: newNotice(clock, claimsSettle, claimsPause)}
}

// Run watches claims until ctx ends. It retries kinds that do not exist or are forbidden. Each
// heartbeat reads all claims in any case.
func (c *Claims) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	for _, kind := range claimKinds() {
		watching.Go(func() { c.follow(ctx, c.member.Resource(kind), claimsRetry) })
	}
	watching.Wait()
	return nil
}

// collectClaims reads the ClusterClaims and ClusterProperties of the member, if it has these kinds.
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

// bounded limits the number of claims: reserved ones first, then the others by name. The order is
// fixed so that the same claims are dropped each time.
func bounded(claims map[string]string) map[string]string {
	first := slices.DeleteFunc(clusterv1.ReservedClaims(), func(name string) bool { _, ok := claims[name]; return !ok })
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(claims)), func(name string) bool { return slices.Contains(first, name) })
	for _, name := range others[min(len(others), maxClaims-len(first)):] {
		delete(claims, name)
	}
	return claims
}

// claim has the common fields of ClusterClaim and ClusterProperty.
type claim struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Value string `json:"value"`
	} `json:"spec"`
}

// addClaims adds the valid claims of a JSON list.
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
