// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

const (
	// ControllerName is the name of the controller that Importer runs.
	ControllerName = "clusterapi.import"
	// restartAfter is the delay after the controller ended by itself, which happens when the kind
	// is removed while it starts.
	restartAfter = 10 * time.Second
)

// DefaultLabels are the labels of Cluster API's Clusters that members get by default: those that
// its book, and the documents of fleets, select by.
func DefaultLabels() []string { return []string{"cni", "env", "environment", "location", "region"} }

// Importer runs the controller while the hub serves Cluster API's Clusters.
type Importer struct {
	// Config is the client configuration of the hub, for caches that end with the kind.
	Config *rest.Config
	// CacheOptions are for these caches: scheme, mapper, HTTP client and transforms.
	CacheOptions cache.Options
	// Client writes; it reads fleet.cattle.io and MemberClusters, from a cache if it has one.
	Client client.Client
	// Live reads from the API server itself.
	Live client.Reader
	// Clusters watches Clusters of fleet.cattle.io.
	Clusters cache.Cache
	// Recorder records on Cluster API's Clusters why they are not imported.
	Recorder events.EventRecorder
	// Namespaces are where clusters may register. If unset, all namespaces.
	Namespaces []string
	// Labels are the keys of labels that members get from their Cluster; one may end with *.
	Labels []string
	// Concurrency is how many Clusters are reconciled at a time. Zero means one.
	Concurrency int
}

// SetupWithManager adds the Importer to the leader-elected runnables.
func (i *Importer) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(i) }

// Start runs until the context ends.
func (i *Importer) Start(ctx context.Context) error {
	definitions, err := cache.New(i.Config, i.options(map[client.Object]cache.ByObject{
		&apiextensionsv1.CustomResourceDefinition{}: {Field: fields.OneTermEqualSelector("metadata.name", definitionName)},
	}))
	if err != nil {
		return fmt.Errorf("watching the definition of Cluster API's Clusters: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return definitions.Start(ctx) })
	group.Go(func() error { return i.follow(ctx, definitions) })
	return group.Wait()
}

func (i *Importer) options(objects map[client.Object]cache.ByObject) cache.Options {
	options := i.CacheOptions
	options.ByObject = objects
	return options
}

// follow runs one controller at a time, for the version that is served now.
func (i *Importer) follow(ctx context.Context, definitions cache.Cache) error {
	changed, err := changesOf(ctx, definitions)
	if err != nil || !definitions.WaitForCacheSync(ctx) {
		return ignoreEnd(ctx, err)
	}
	for ctx.Err() == nil {
		served, err := servedNow(ctx, definitions)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		i.runUntil(ctx, served, func() bool {
			select {
			case <-ctx.Done():
				return false
			case <-changed:
				now, err := servedNow(ctx, definitions)
				return err == nil && now == served
			}
		})
	}
	return nil
}

func servedNow(ctx context.Context, definitions client.Reader) (string, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	_, err := reconcileutil.GetIfExists(ctx, definitions, client.ObjectKey{Name: definitionName}, &definition, "reading the definition of Cluster API's Clusters")
	return servedVersion(&definition), err
}

// changesOf has a buffer of one: it only signals that something changed.
func changesOf(ctx context.Context, definitions cache.Cache) (<-chan struct{}, error) {
	informer, err := definitions.GetInformer(ctx, &apiextensionsv1.CustomResourceDefinition{})
	if err != nil {
		return nil, fmt.Errorf("watching the definition of Cluster API's Clusters: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
	})
	if err != nil {
		return nil, fmt.Errorf("watching the definition of Cluster API's Clusters: %w", err)
	}
	return changed, nil
}

// runUntil runs the controller for a version, or nothing if that is empty, until stays returns
// false.
func (i *Importer) runUntil(ctx context.Context, served string, stays func() bool) {
	running, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for served != "" && running.Err() == nil {
			i.run(running, served)
		}
	})
	for stays() {
		continue
	}
	stop()
	work.Wait()
}

func (i *Importer) run(ctx context.Context, served string) {
	logger := log.FromContext(ctx).WithValues("version", served)
	logger.Info("Cluster API is here: its clusters can be imported")
	if err := i.runController(ctx, served); err != nil && ctx.Err() == nil {
		logger.Error(err, "Importing clusters of Cluster API stopped; trying again", "after", restartAfter)
		select {
		case <-ctx.Done():
		case <-time.After(restartAfter):
		}
	}
}

func (i *Importer) runController(ctx context.Context, served string) error {
	ofClusters, err := labels.NewRequirement(labelClusterName, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("selecting Secrets of Cluster API: %w", err)
	}
	own, err := cache.New(i.Config, i.options(map[client.Object]cache.ByObject{
		// Only metadata of these Secrets is cached, because their content is not needed here.
		&corev1.Secret{}: {Label: labels.NewSelector().Add(*ofClusters), Field: fields.OneTermEqualSelector("type", secretType)},
	}))
	if err != nil {
		return fmt.Errorf("making a cache of Cluster API's objects: %w", err)
	}
	r := &reconciler{Importer: i, origins: own, kind: schema.GroupVersionKind{Group: group, Version: served, Kind: "Cluster"}}
	c, err := controller.NewTypedUnmanaged(ControllerName, controller.TypedOptions[reconcile.Request]{
		Reconciler: reconcileutil.RetryConflicts(r), MaxConcurrentReconciles: i.Concurrency, SkipNameValidation: ptr.To(true), Logger: log.FromContext(ctx),
	})
	if err != nil {
		return fmt.Errorf("making the controller: %w", err)
	}
	for _, watched := range r.sources() {
		if err := c.Watch(watched); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return own.Start(ctx) })
	group.Go(func() error {
		if err := c.Start(ctx); err != nil {
			return err
		}
		return errEnded
	})
	return group.Wait()
}

// errEnded ends the cache with the controller.
var errEnded = errors.New("the controller has ended")

// sources trigger the reconciliation of a Cluster: itself, its kubeconfig, its namespace, and the
// Cluster that was created for it.
func (r *reconciler) sources() []source.Source {
	secret, namespace := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return []source.Source{
		source.Kind(r.origins, r.newOrigin(), &handler.TypedEnqueueRequestForObject[*unstructured.Unstructured]{}),
		source.Kind(r.origins, secret, handler.TypedEnqueueRequestsFromMapFunc(originOfSecret)),
		source.Kind(r.origins, namespace, handler.TypedEnqueueRequestsFromMapFunc(r.originsIn)),
		source.Kind(r.Clusters, &registrationv1alpha1.Cluster{}, handler.TypedEnqueueRequestsFromMapFunc(originOfFleet)),
	}
}

func originOfSecret(_ context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
	name := secret.Labels[labelClusterName]
	if secret.Name != secretName(name) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: secret.Namespace, Name: name}}}
}

func originOfFleet(_ context.Context, fleet *registrationv1alpha1.Cluster) []reconcile.Request {
	name := fleet.Annotations[AnnotationOrigin]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: fleet.Namespace, Name: name}}}
}

func (r *reconciler) originsIn(ctx context.Context, namespace *metav1.PartialObjectMetadata) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.kind)
	return enqueue.All(ctx, r.origins, list, client.InNamespace(namespace.Name))
}

// servedVersion is the newest version of the kind that the hub serves; empty if none.
func servedVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	if !apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established) || !definition.DeletionTimestamp.IsZero() {
		return ""
	}
	newest := ""
	for _, v := range definition.Spec.Versions {
		if v.Served && (newest == "" || version.CompareKubeAwareVersionStrings(v.Name, newest) > 0) {
			newest = v.Name
		}
	}
	return newest
}

// ignoreEnd drops errors that stopping causes.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		//lint:ignore nilerr The shutdown caused the error.
		return nil
	}
	return err
}
