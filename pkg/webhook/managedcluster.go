// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/webhook/author"
)

// defaultPeriod is how often agents renew their Leases, in seconds, if nobody says so.
const defaultPeriod = 60

// clustersDefaulter completes ManagedClusters.
type clustersDefaulter struct{ clock clock.PassiveClock }

// Default says when taints came, which nobody else may, puts clusters that are in no set
// into the one for these, and marks new ones for the controller that lets them go. It returns 400
// for times that somebody wrote.
func (d clustersDefaulter) Default(ctx context.Context, cluster *clusterv1.ManagedCluster) error {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	var older *clusterv1.ManagedCluster
	if len(request.OldObject.Raw) > 0 {
		older = &clusterv1.ManagedCluster{}
		if err := json.Unmarshal(request.OldObject.Raw, older); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	if wrong := d.dateTaints(older, cluster); len(wrong) > 0 {
		return apierrors.NewBadRequest(fmt.Sprintf("It is not allowed to set TimeAdded of Taint %q.", strings.Join(wrong, ",")))
	}
	if older == nil {
		// That controller would, by a write that meets the first ones of others.
		controllerutil.AddFinalizer(cluster, clusterv1.ResourceCleanupFinalizer)
		controllerutil.AddFinalizer(cluster, clusterv1.GarbageFinalizer)
	}
	if cluster.Spec.LeaseDurationSeconds == 0 {
		cluster.Spec.LeaseDurationSeconds = defaultPeriod
	}
	// An agent must not write labels, so an update of other fields by an agent does not set this one.
	if cluster.Labels[clusterv1.ClusterSetLabel] == "" && (older == nil || !strings.HasPrefix(request.UserInfo.Username, clusterv1.UserPrefix)) {
		metav1.SetMetaDataLabel(&cluster.ObjectMeta, clusterv1.ClusterSetLabel, clusterv1beta2.DefaultSet)
	}
	return nil
}

// dateTaints writes when taints came or changed, and returns the keys of those whose time
// somebody wrote. In a new cluster such times are nobody's concern.
func (d clustersDefaulter) dateTaints(older, newer *clusterv1.ManagedCluster) []string {
	var wrong []string
	now := metav1.NewTime(d.clock.Now())
	for i := range newer.Spec.Taints {
		taint := &newer.Spec.Taints[i]
		if older == nil {
			taint.TimeAdded = now
			continue
		}
		before := slices.IndexFunc(older.Spec.Taints, func(t clusterv1.Taint) bool { return t.Key == taint.Key })
		same := before >= 0 && older.Spec.Taints[before].Value == taint.Value && older.Spec.Taints[before].Effect == taint.Effect
		switch {
		case same && older.Spec.Taints[before].TimeAdded.Equal(&taint.TimeAdded):
		case same || !taint.TimeAdded.IsZero():
			wrong = append(wrong, taint.Key)
		default:
			taint.TimeAdded = now
		}
	}
	return wrong
}

// clustersValidator serves the rules of ManagedClusters.
type clustersValidator struct {
	authors authors
	live    client.Reader
}

// ValidateCreate returns 400 for an invalid new cluster, and 403 if its author lacks a right
// that it needs.
func (v clustersValidator) ValidateCreate(ctx context.Context, cluster *clusterv1.ManagedCluster) (admission.Warnings, error) {
	if wrong := validation.IsDNS1123Label(cluster.Name); len(wrong) > 0 {
		return nil, apierrors.NewBadRequest("metadata.name format is not correct: " + strings.Join(wrong, ","))
	}
	return nil, v.refuse(ctx, &clusterv1.ManagedCluster{}, cluster)
}

// ValidateUpdate is the same for what an update changes.
func (v clustersValidator) ValidateUpdate(ctx context.Context, older, newer *clusterv1.ManagedCluster) (admission.Warnings, error) {
	return nil, v.refuse(ctx, older, newer)
}

// ValidateDelete allows.
func (v clustersValidator) ValidateDelete(context.Context, *clusterv1.ManagedCluster) (admission.Warnings, error) {
	return nil, nil
}

func (v clustersValidator) refuse(ctx context.Context, older, newer *clusterv1.ManagedCluster) error {
	for _, config := range newer.Spec.ManagedClusterClientConfigs {
		if address, err := url.Parse(config.URL); err != nil || address.Scheme != "https" || address.Host == "" {
			return apierrors.NewBadRequest(fmt.Sprintf("url %q is invalid in client configs", config.URL))
		}
	}
	if newer.Spec.HubAcceptsClient && !older.Spec.HubAcceptsClient {
		if err := v.refuseAccept(ctx, newer.Name); err != nil {
			return err
		}
	}
	before, after := older.Labels[clusterv1.ClusterSetLabel], newer.Labels[clusterv1.ClusterSetLabel]
	if before == after {
		return nil
	}
	for _, set := range []string{before, after} {
		if set == "" {
			continue
		}
		join := author.Access{Verb: "create", Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: "join", Name: set}
		if err := v.authors.forbidden(ctx, join, "user %q cannot add/remove a ManagedCluster to/from ManagedClusterSet %q", set); err != nil {
			return err
		}
	}
	return nil
}

// refuseAccept returns 403 if the author cannot accept the cluster, or its namespace is
// terminating.
func (v clustersValidator) refuseAccept(ctx context.Context, cluster string) error {
	accept := author.Access{Verb: "update", Group: "register.open-cluster-management.io", Resource: "managedclusters", Subresource: "accept", Name: cluster}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	switch err := v.live.Get(ctx, client.ObjectKey{Name: cluster}, namespace); {
	case client.IgnoreNotFound(err) != nil:
		return apierrors.NewInternalError(err)
	case err == nil && namespace.DeletionTimestamp != nil:
		return forbidden(accept, fmt.Errorf("cluster namespace %q is terminating", cluster))
	}
	return v.authors.forbidden(ctx, accept, "user %q cannot update the HubAcceptsClient field")
}

// forbidden is 403 if the author of what is under review has not the right. The text is for
// fmt.Errorf, with the author's name first.
func (a authors) forbidden(ctx context.Context, right author.Access, text string, more ...any) error {
	checker, err := a.checker(ctx)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	may, err := checker.May(ctx, author.Question{Any: []author.Access{right}})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if may[0] {
		return nil
	}
	return forbidden(right, fmt.Errorf(text, append([]any{checker.User()}, more...)...))
}

// forbidden is 403. Its group is that of clusters, whichever the right is of: clients compare
// the sentence.
func forbidden(right author.Access, why error) error {
	resource := schema.GroupResource{Group: clusterv1.GroupName, Resource: right.Resource + "/" + right.Subresource}
	return apierrors.NewForbidden(resource, right.Name, why)
}

// bindingsValidator serves the rules of ManagedClusterSetBindings.
type bindingsValidator struct{ authors authors }

// otherName is what clients compare.
const otherName = "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet"

// ValidateCreate returns 400 for a binding of another name than its set's, and 403 if its
// author cannot bind that set.
func (v bindingsValidator) ValidateCreate(ctx context.Context, binding *clusterv1beta2.ManagedClusterSetBinding) (admission.Warnings, error) {
	if binding.Name != binding.Spec.ClusterSet {
		return nil, apierrors.NewBadRequest(otherName)
	}
	bind := author.Access{Verb: "create", Group: clusterv1.GroupName, Resource: "managedclustersets", Subresource: "bind", Name: binding.Name}
	return nil, v.authors.forbidden(ctx, bind, "user %q is not allowed to bind cluster set %q", binding.Name)
}

// ValidateUpdate returns 400 for a binding that is to be of another set.
func (v bindingsValidator) ValidateUpdate(_ context.Context, _, binding *clusterv1beta2.ManagedClusterSetBinding) (admission.Warnings, error) {
	if binding.Name != binding.Spec.ClusterSet {
		return nil, apierrors.NewBadRequest(otherName)
	}
	return nil, nil
}

// ValidateDelete allows.
func (v bindingsValidator) ValidateDelete(context.Context, *clusterv1beta2.ManagedClusterSetBinding) (admission.Warnings, error) {
	return nil, nil
}
