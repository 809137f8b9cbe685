// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

// Bounds of what a member says of itself: what is beyond is left out.
const (
	maxClaims           = 100
	maxClaimValueLength = 1024
)

// spokeOnlyLabel hides a claim from the hub, as Open Cluster Management's users know it.
const spokeOnlyLabel = "open-cluster-management.io/spoke-only"

// claimPaths are where claims are, the ones that win last.
func claimPaths() []string {
	return []string{
		"/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims",
		"/apis/about.k8s.io/v1alpha1/clusterproperties",
		"/apis/about.k8s.io/v1beta1/clusterproperties",
	}
}

// collectClaims reads the ClusterClaims and ClusterProperties of the member, whichever
// of these kinds it has.
func collectClaims(ctx context.Context, member kubernetes.Interface) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	claims := map[string]string{}
	for _, path := range claimPaths() {
		raw, err := member.Discovery().RESTClient().Get().AbsPath(path).Param("limit", strconv.Itoa(maxClaims)).Do(ctx).Raw()
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
	return claims, nil
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

// addClaims takes what a list in JSON has and the bounds allow. An API server lists by
// name, so it is the same ones that are left out each time.
func addClaims(claims map[string]string, list []byte) error {
	var content struct {
		Items []claim `json:"items"`
	}
	if err := json.Unmarshal(list, &content); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	for _, c := range content.Items {
		_, hidden := c.Metadata.Labels[spokeOnlyLabel]
		_, known := claims[c.Metadata.Name]
		usable := c.Spec.Value != "" && len(c.Spec.Value) <= maxClaimValueLength && !strings.Contains(c.Metadata.Name, "/")
		if hidden || !usable || !known && len(claims) >= maxClaims {
			continue
		}
		claims[c.Metadata.Name] = c.Spec.Value
	}
	return nil
}
