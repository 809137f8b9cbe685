// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/listget"
)

const (
	// refresh is how often facts without a watch are read: machine pools, and the objects of
	// providers.
	refresh = 10 * time.Minute
	// maxPools limits how many machine pools and deployments are read.
	maxPools = 100
)

// Reasons of events on Cluster API's Clusters.
const (
	// EventNamespaceNotAllowed: clusters do not register in this namespace.
	EventNamespaceNotAllowed = "ImportNamespaceNotAllowed"
	// EventNameTaken: there is a Cluster of that name that was not created for this one.
	EventNameTaken = "ImportNameTaken"
	// EventImporting: a Cluster was made.
	EventImporting = "Importing"
)

// reconciler imports Clusters of one version of Cluster API.
type reconciler struct {
	*Importer
	// origins reads Cluster API's Clusters, and metadata of namespaces and of Secrets with
	// kubeconfigs.
	origins cache.Cache
	kind    schema.GroupVersionKind
}

func (r *reconciler) newOrigin() *unstructured.Unstructured {
	origin := &unstructured.Unstructured{}
	origin.SetGroupVersionKind(r.kind)
	return origin
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, req.NamespacedName))
}

var _ reconcile.Reconciler = (*reconciler)(nil)

func (r *reconciler) reconcile(ctx context.Context, key types.NamespacedName) (ctrl.Result, error) {
	fleet, err := r.fleetOf(ctx, key)
	if err != nil {
		return ctrl.Result{}, err
	}
	origin := r.newOrigin()
	found, err := reconcileutil.GetIfExists(ctx, r.origins, key, origin, "reading Cluster API's Cluster %q", key.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	gone := !found
	if fleet != nil && isFrom(fleet, key.Name) && (gone || !origin.GetDeletionTimestamp().IsZero() || isOther(fleet, origin)) {
		return ctrl.Result{}, r.leave(ctx, fleet, gone || isOther(fleet, origin))
	}
	if gone || !origin.GetDeletionTimestamp().IsZero() || isPaused(origin) {
		return ctrl.Result{}, nil
	}
	return r.keep(ctx, origin, fleet)
}

// fleetOf returns the Cluster that was, or would be, created for this one; nil if there is none.
func (r *reconciler) fleetOf(ctx context.Context, key types.NamespacedName) (*registrationv1alpha1.Cluster, error) {
	var fleet registrationv1alpha1.Cluster
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKey{Namespace: key.Namespace, Name: fleetName(key.Name)}, &fleet, "reading Cluster %q", fleetName(key.Name)); !found {
		return nil, err
	}
	return &fleet, nil
}

func isFrom(fleet *registrationv1alpha1.Cluster, origin string) bool {
	return fleet.Annotations[AnnotationOrigin] == origin
}

// isOther is true if a Cluster was created for an earlier cluster of the same name.
func isOther(fleet *registrationv1alpha1.Cluster, origin *unstructured.Unstructured) bool {
	return fleet.Annotations[AnnotationOriginUID] != string(origin.GetUID())
}

// keep creates the Cluster once everything is ready, and updates it afterwards. An imported cluster
// remains imported when its label is removed: only its deletion removes it.
func (r *reconciler) keep(ctx context.Context, origin *unstructured.Unstructured, fleet *registrationv1alpha1.Cluster) (ctrl.Result, error) {
	if fleet != nil && !isFrom(fleet, origin.GetName()) {
		return ctrl.Result{}, r.refuseName(ctx, origin, fleet)
	}
	if fleet == nil {
		ready, err := r.isReady(ctx, origin)
		if !ready || err != nil {
			return ctrl.Result{}, err
		}
	}
	seen, err := r.objectsOf(ctx, origin)
	if err != nil {
		return ctrl.Result{}, err
	}
	f := factsOf(seen)
	labels, properties := desiredLabels(origin.GetLabels(), r.Labels, f), desiredProperties(f)
	if fleet == nil {
		err = r.create(ctx, origin, labels, properties)
	} else {
		err = r.update(ctx, origin, fleet, labels, properties)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: refresh}, nil
}

// isReady is true if the import can begin. An event follows when a missing object appears.
func (r *reconciler) isReady(ctx context.Context, origin *unstructured.Unstructured) (bool, error) {
	optedIn, err := r.isOptedIn(ctx, origin)
	if !optedIn || err != nil {
		return false, err
	}
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, origin.GetNamespace()) {
		r.Recorder.Eventf(origin, nil, corev1.EventTypeWarning, EventNamespaceNotAllowed, "Import",
			"Clusters do not register in namespace %q: add it to the gateway's --registration-namespaces, or take the label %s away",
			origin.GetNamespace(), LabelAutoImport)
		return false, nil
	}
	return isInitialized(origin) && r.hasKubeconfig(ctx, origin), nil
}

func (r *reconciler) isOptedIn(ctx context.Context, origin *unstructured.Unstructured) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.origins.Get(ctx, client.ObjectKey{Name: origin.GetNamespace()}, namespace); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return isOptedIn(origin.GetLabels(), namespace.Labels), nil
}

// hasKubeconfig finds the Secret by the name, type and label of the contract: other Secrets have
// the same suffix and are for people.
func (r *reconciler) hasKubeconfig(ctx context.Context, origin *unstructured.Unstructured) bool {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.origins.Get(ctx, client.ObjectKey{Namespace: origin.GetNamespace(), Name: secretName(origin.GetName())}, secret)
	return err == nil && secret.Labels[labelClusterName] == origin.GetName()
}

func (r *reconciler) refuseName(ctx context.Context, origin *unstructured.Unstructured, fleet *registrationv1alpha1.Cluster) error {
	if optedIn, err := r.isOptedIn(ctx, origin); !optedIn || err != nil {
		return err
	}
	r.Recorder.Eventf(origin, nil, corev1.EventTypeWarning, EventNameTaken, "Import",
		"Cluster %q of %s exists and was not created for this one: delete it, or set the label %s to \"false\"",
		fleet.Name, registrationv1alpha1.GroupName, LabelAutoImport)
	return nil
}

func (r *reconciler) create(ctx context.Context, origin *unstructured.Unstructured, labels, properties map[string]string) error {
	fleet := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: origin.GetNamespace(), Name: fleetName(origin.GetName()),
	}}
	if err := desired(fleet, origin, labels, properties); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, fleet); err != nil {
		return fmt.Errorf("creating Cluster %q: %w", fleet.Name, err)
	}
	r.Recorder.Eventf(origin, nil, corev1.EventTypeNormal, EventImporting, "Import", "Made Cluster %q of %s", fleet.Name, registrationv1alpha1.GroupName)
	log.FromContext(ctx).Info("Importing a cluster of Cluster API", "cluster", fleet.Name)
	return nil
}

func (r *reconciler) update(ctx context.Context, origin *unstructured.Unstructured, fleet *registrationv1alpha1.Cluster, labels, properties map[string]string) error {
	base := fleet.DeepCopy()
	if err := desired(fleet, origin, labels, properties); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(base, fleet) {
		return nil
	}
	if err := r.Client.Patch(ctx, fleet, reconcileutil.PatchFrom(base)); err != nil {
		return fmt.Errorf("writing Cluster %q: %w", fleet.Name, err)
	}
	return nil
}

// leave deletes the Cluster, and its member with it. The agent may still answer while Cluster API
// deletes the cluster; once that is gone nobody waits for it. Nothing is removed from the member,
// because the whole cluster is deleted.
func (r *reconciler) leave(ctx context.Context, fleet *registrationv1alpha1.Cluster, gone bool) error {
	if fleet.DeletionTimestamp.IsZero() {
		if err := r.Client.Delete(ctx, fleet, client.Preconditions{UID: &fleet.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Cluster %q: %w", fleet.Name, err)
		}
		log.FromContext(ctx).Info("A cluster of Cluster API is being deleted: its member leaves", "cluster", fleet.Name)
	}
	if !gone {
		return nil
	}
	return r.letGo(ctx, fleet)
}

func (r *reconciler) letGo(ctx context.Context, fleet *registrationv1alpha1.Cluster) error {
	name := fleet.Annotations[registration.AnnotationMember]
	if name == "" {
		return nil
	}
	var mc clusterv1beta1.MemberCluster
	if err := r.Live.Get(ctx, client.ObjectKey{Name: name}, &mc); err != nil {
		return client.IgnoreNotFound(err)
	}
	if mc.Annotations[registration.AnnotationClusterUID] != string(fleet.UID) || mc.Annotations[clusterv1beta1.AnnotationGone] == "true" {
		return nil
	}
	return client.IgnoreNotFound(reconcileutil.Patch(ctx, r.Client, &mc, func() {
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1beta1.AnnotationGone, "true")
	}, "writing on MemberCluster %q that its cluster is gone", name))
}

// objectsOf reads the objects that a Cluster refers to, if they exist.
func (r *reconciler) objectsOf(ctx context.Context, origin *unstructured.Unstructured) (objects, error) {
	found := objects{cluster: origin}
	var err error
	if found.infrastructure, err = r.resolve(ctx, origin, "spec", "infrastructureRef"); err != nil {
		return found, err
	}
	if found.controlPlane, err = r.resolve(ctx, origin, "spec", "controlPlaneRef"); err != nil {
		return found, err
	}
	for _, kind := range []string{"MachinePool", "MachineDeployment"} {
		pools, err := r.pools(ctx, origin, kind)
		if err != nil {
			return found, err
		}
		for i := range pools {
			machines, err := r.resolve(ctx, &pools[i], "spec", "template", "spec", "infrastructureRef")
			if err != nil {
				return found, err
			}
			if machines != nil {
				found.machines = append(found.machines, machines)
			}
		}
	}
	return found, nil
}

// pools are the machine pools or deployments of a Cluster; none if the hub does not serve the kind.
func (r *reconciler) pools(ctx context.Context, origin *unstructured.Unstructured, kind string) ([]unstructured.Unstructured, error) {
	mapping, err := r.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding %s of Cluster API: %w", kind, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	err = r.Live.List(ctx, list, client.InNamespace(origin.GetNamespace()), client.MatchingLabels{labelClusterName: origin.GetName()}, client.Limit(maxPools))
	if err != nil {
		return nil, fmt.Errorf("listing %ss of Cluster API's Cluster %q: %w", kind, origin.GetName(), err)
	}
	return list.Items, nil
}

// resolve reads the object of a reference, in the hub's preferred version, or nil. It reads only
// kinds of Cluster API's providers in the Cluster's own namespace, because the author of a Cluster
// chooses the reference.
func (r *reconciler) resolve(ctx context.Context, from *unstructured.Unstructured, path ...string) (*unstructured.Unstructured, error) {
	at := func(name string) string { return text(from, append(slices.Clone(path), name)...) }
	kind := schema.GroupKind{Group: at("apiGroup"), Kind: at("kind")}
	if kind.Group == "" {
		kind.Group, _, _ = strings.Cut(at("apiVersion"), "/")
	}
	if at("name") == "" || !strings.HasSuffix(kind.Group, providerSuffix) {
		return nil, nil
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", kind, err)
	}
	key := client.ObjectKey{Namespace: from.GetNamespace(), Name: at("name")}
	object, err := listget.Get(ctx, listget.Through(r.Live, mapping.GroupVersionKind, key.Namespace), mapping.Resource, key, "")
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind.Kind, at("name"), err)
	}
	return object, nil
}
