// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// TakeOver returns why no other member can replace one of a placement's members, or "". It decides
// twice, with and without the member: a replacement compensates for the member.
func (r *Reconciler) TakeOver(ctx context.Context, placement placementv1beta1.PlacementObject, bindings []placementv1beta1.BindingObject, member string) (why string, err error) {
	snapshots, err := objects.PolicySnapshots(ctx, r.Client, client.ObjectKeyFromObject(placement))
	if err != nil {
		return "", err
	}
	latest := objects.LatestPolicySnapshot(placement, snapshots)
	if latest == nil {
		return "its policy is not scheduled yet", nil
	}
	policy, err := policyOf(latest)
	if refused := refusal.Of(err); refused != nil {
		//lint:ignore nilerr A policy that cannot be decided is the answer: nobody can take over.
		return refused.Message, nil
	}
	if err != nil {
		return "", err
	}
	AddTerms(policy, placement)
	clusters, err := r.members.clusters(ctx, r.Client, r.Marks)
	if err != nil {
		return "", err
	}
	fleet := &framework.Fleet{Now: r.Clock.Now(), Clusters: clusters}
	return takeOver(&r.Profile, policy, fleet, holdingsOf(placement, bindings, latest.GetName()), member)
}

func takeOver(profile *framework.Profile, policy *framework.Policy, fleet *framework.Fleet, holdings []framework.Holding, member string) (why string, err error) {
	with, err := profile.Decide(policy, fleet, holdings)
	if err != nil {
		return "", err
	}
	rest := &framework.Fleet{Now: fleet.Now, MostDecided: fleet.MostDecided,
		Clusters: slices.DeleteFunc(slices.Clone(fleet.Clusters), func(c framework.Cluster) bool { return c.Name == member })}
	others := slices.DeleteFunc(slices.Clone(holdings), func(h framework.Holding) bool { return h.Cluster == member })
	without, err := profile.Decide(policy, rest, others)
	if err != nil || len(without.Selected) >= len(with.Selected) {
		return "", err
	}
	if policy.Kind == framework.PickAll {
		return "the placement is on all that fit", nil
	}
	return cmp.Or(profile.Diagnose(policy, rest, &without).String(), "none fits"), nil
}
