// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// LeaderLease begins the name of the Lease that a running gateway's leader holds.
const LeaderLease = "fleetgate-gateway"

// A RunningError says that a gateway still runs, which would write again what is
// removed.
type RunningError struct{ Lease, Holder string }

// Error names the Lease and the remedy.
func (e *RunningError) Error() string {
	return fmt.Sprintf("a gateway runs (Lease %s is held by %s) and would write everything again: stop it first", e.Lease, e.Holder)
}

// Uninstaller removes what leads the hub's API server to a gateway. It needs no
// gateway, and runs from anywhere.
type Uninstaller struct {
	// Client reads from the API server itself.
	Client client.Client
	// Namespace is the gateway's.
	Namespace string
	// Clock tells whether a Lease is still held.
	Clock clock.PassiveClock
	// Removed is told of each object that was removed.
	Removed func(kind, name string)
}

// Uninstall removes what refuses first: webhook configurations, then APIServices,
// which hold up the deletion of every namespace while nobody answers, then policies.
// CustomResourceDefinitions and everything in them stay. A *RunningError says that
// nothing was done.
func (u *Uninstaller) Uninstall(ctx context.Context) error {
	if err := u.refuseIfRunning(ctx); err != nil {
		return err
	}
	for _, list := range []client.ObjectList{
		&admissionregistrationv1.MutatingWebhookConfigurationList{},
		&admissionregistrationv1.ValidatingWebhookConfigurationList{},
		&apiregistrationv1.APIServiceList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyBindingList{},
		&admissionregistrationv1.ValidatingAdmissionPolicyList{},
	} {
		if err := u.removeAll(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

func (u *Uninstaller) refuseIfRunning(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := u.Client.List(ctx, &leases, client.InNamespace(u.Namespace)); err != nil {
		return fmt.Errorf("looking whether a gateway runs: %w", err)
	}
	for i := range leases.Items {
		lease := &leases.Items[i]
		if strings.HasPrefix(lease.Name, LeaderLease) && held(lease, u.Clock.Now()) {
			return &RunningError{Lease: lease.Namespace + "/" + lease.Name, Holder: *lease.Spec.HolderIdentity}
		}
	}
	return nil
}

// removeAll removes every object of a kind that is labelled as ours; one that
// cannot be removed keeps none of the others.
func (u *Uninstaller) removeAll(ctx context.Context, list client.ObjectList) error {
	if err := u.Client.List(ctx, list, client.MatchingLabels{LabelManagedBy: ManagedBy}); err != nil {
		return fmt.Errorf("looking for what to remove: %w", err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("looking for what to remove: %w", err)
	}
	var failures []error
	for _, item := range objects {
		object, ok := item.(client.Object)
		if !ok {
			return fmt.Errorf("looking for what to remove: %T is no object", item)
		}
		kind, err := u.Client.GroupVersionKindFor(object)
		if err != nil {
			return fmt.Errorf("looking for what to remove: %w", err)
		}
		if err := client.IgnoreNotFound(u.Client.Delete(ctx, object)); err != nil {
			failures = append(failures, fmt.Errorf("removing %s %s: %w", kind.Kind, object.GetName(), err))
			continue
		}
		u.Removed(kind.Kind, object.GetName())
	}
	return errors.Join(failures...)
}

// removeObsolete removes what this configuration does not want any more. A role of the
// version before does not name what that version could not have made: it is left alone.
func (i *Installer) removeObsolete(ctx context.Context) error {
	for _, object := range i.Obsolete {
		current, err := i.get(ctx, object)
		if apierrors.IsForbidden(err) {
			log.FromContext(ctx).V(2).Info("Left alone what the role does not name", "object", object.GetName(), "reason", err.Error())
			continue
		}
		if err != nil {
			return err
		}
		if err := i.removeOurs(ctx, current); err != nil {
			return err
		}
	}
	return nil
}

// removeAllOurs removes objects of ours; what somebody else made under the name stays.
func (i *Installer) removeAllOurs(ctx context.Context, objects []client.Object) error {
	for _, object := range objects {
		current, err := i.get(ctx, object)
		if err != nil {
			return err
		}
		if err := i.removeOurs(ctx, current); err != nil {
			return err
		}
	}
	return nil
}

// removeOurs removes an object, unless it is not there or is somebody else's.
func (i *Installer) removeOurs(ctx context.Context, current *unstructured.Unstructured) error {
	if current == nil || !ours(current) {
		return nil
	}
	uid := current.GetUID()
	err := i.Client.Delete(ctx, current, client.Preconditions(metav1.Preconditions{UID: &uid}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing %s %s: %w", current.GetKind(), current.GetName(), err)
	}
	return nil
}
