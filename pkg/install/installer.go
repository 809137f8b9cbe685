// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/crdwait"
)

// FieldOwner is the field manager of the installer.
const FieldOwner = client.FieldOwner("fleetgate-install")

const (
	// establishTimeout is for an API server that starts on a busy machine: it took 45 s to establish
	// dozens of definitions. The chart's startupProbe waits longer.
	establishTimeout = 2 * time.Minute
	// definitionsAtOnce is the number of definitions that are processed at a time. A gateway needs
	// dozens before it does anything else, and a hub may take seconds per response.
	definitionsAtOnce = 10
)

// Installer installs the gateway's dependencies on the hub.
type Installer struct {
	// Client reads from the API server, because there is no cache yet when CustomResourceDefinitions
	// are installed.
	Client client.Client
	// Definitions are the CustomResourceDefinitions that the gateway needs.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// APIs are the aggregated APIs that this gateway serves.
	APIs []GroupVersion
	// Hub describes how the API server reaches the gateway.
	Hub Hub
	// Extra are admission policies and webhook configurations, ready to apply.
	Extra []client.Object
	// Obsolete are those of another configuration of the gateway that this one does not have.
	Obsolete []client.Object
	// Version is the gateway's semantic version. A definition that a newer one installed is not
	// changed.
	Version string
	// Adopt allows to adopt objects of a product that is no longer running.
	Adopt bool
	Clock clock.PassiveClock
}

// InstallDefinitions installs the CustomResourceDefinitions and returns when all of them are served.
func (i *Installer) InstallDefinitions(ctx context.Context) error {
	objects := make([]client.Object, 0, len(i.Definitions))
	for _, definition := range i.Definitions {
		kept, err := i.keepConversion(ctx, definition)
		if err != nil {
			return err
		}
		objects = append(objects, kept)
	}
	if err := i.install(ctx, objects, definitionsAtOnce); err != nil {
		return fmt.Errorf("installing CustomResourceDefinitions: %w", err)
	}
	return i.WaitForDefinitions(ctx)
}

// WaitForDefinitions returns when all CustomResourceDefinitions are served: a gateway that does not
// install waits for the one that does.
func (i *Installer) WaitForDefinitions(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(definitionsAtOnce)
	for _, definition := range i.Definitions {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, establishTimeout)
			defer cancel()
			err := crdwait.UntilServed(ctx, i.Client, definition.Name)
			if errors.Is(err, crdwait.ErrMissing) {
				return fmt.Errorf("%w; run one gateway with --install", err)
			}
			return err
		})
	}
	return group.Wait()
}

// InstallBase installs the namespace, and the Service of a gateway outside the hub. If the namespace is
// being deleted, it waits for its deletion until the context ends.
func (i *Installer) InstallBase(ctx context.Context) error {
	if err := i.outliveNamespace(ctx); err != nil {
		return err
	}
	return i.install(ctx, i.Hub.base(), 1)
}

// InstallServing installs the objects that route requests to the gateway: APIServices, policies and
// webhook configurations. Call it when the gateway is ready to serve.
func (i *Installer) InstallServing(ctx context.Context) error {
	if err := i.install(ctx, append(i.Hub.apiServices(i.APIs), i.Extra...), 1); err != nil {
		return err
	}
	return i.removeObsolete(ctx)
}

// install writes all objects, or none if one has a foreign owner, because a mixture of two products'
// APIs would be worse than either. It reports every foreign object, not only the first. atOnce is the
// number of objects that are processed at a time; with 1, they are written in order.
func (i *Installer) install(ctx context.Context, objects []client.Object, atOnce int) error {
	for _, step := range []func(context.Context, client.Object) error{i.check, i.apply} {
		failures := make([]error, len(objects))
		var group errgroup.Group
		group.SetLimit(atOnce)
		for n, object := range objects {
			group.Go(func() error {
				failures[n] = step(ctx, object)
				return nil // All are tried, even if one fails.
			})
		}
		_ = group.Wait()
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if apply would fail.
func (i *Installer) check(ctx context.Context, wanted client.Object) error {
	current, err := i.get(ctx, wanted)
	if err != nil || current == nil || isLeftAlone(current) || ours(current) {
		return err
	}
	return i.mayAdopt(ctx, current)
}

// get returns the existing object, or nil.
func (i *Installer) get(ctx context.Context, wanted client.Object) (*unstructured.Unstructured, error) {
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(wanted.GetObjectKind().GroupVersionKind())
	if found, err := reconcileutil.GetIfExists(ctx, i.Client, client.ObjectKeyFromObject(wanted), current, "looking for %s %s", kindOf(wanted), wanted.GetName()); !found {
		return nil, err
	}
	return current, nil
}

// isLeftAlone is true for namespaces. They are created once and never adopted, because the chart or an
// administrator may own them.
func isLeftAlone(current client.Object) bool { return kindOf(current) == "Namespace" }

// apply writes one object, unless it is up to date, has a foreign owner, or is a definition of a newer
// gateway. Its decision is for the object that it read: after a conflict it reads the object again.
func (i *Installer) apply(ctx context.Context, wanted client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(wanted)
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", kindOf(wanted), wanted.GetName(), err)
	}
	desired := &unstructured.Unstructured{Object: content}
	mark(desired, i.Version)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return i.applyOnce(ctx, desired.DeepCopy()) })
}

func (i *Installer) applyOnce(ctx context.Context, desired *unstructured.Unstructured) error {
	kind, name := desired.GetKind(), desired.GetName()
	current, err := i.get(ctx, desired)
	if err != nil || current != nil && isLeftAlone(current) {
		return err
	}
	if current != nil {
		if !ours(current) {
			if err := i.adopt(ctx, current, desired); err != nil {
				return err
			}
		} else if installed := current.GetAnnotations()[AnnotationVersion]; holdsState(current) && newer(installed, i.Version) {
			log.FromContext(ctx).Info("Kept an object that a newer gateway installed", "kind", kind, "name", name, "installed", installed)
			return nil
		} else if err := i.revert(ctx, current, desired); err != nil {
			return err
		} else if isUpToDate(current, desired) {
			return nil
		}
		desired.SetUID(current.GetUID())
		desired.SetResourceVersion(current.GetResourceVersion())
	}
	if err := i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("installing %s %s: %w", kind, name, err)
	}
	return nil
}

// holdsState is true for definitions, because other objects store their fields. Objects that route
// requests to a gateway must match the running one, also after a rollback: a webhook that it does not
// serve would reject every write.
func holdsState(current client.Object) bool { return kindOf(current) == "CustomResourceDefinition" }

func kindOf(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

// mark labels the object as ours and removes fields that only the server can set.
func mark(object *unstructured.Unstructured, version string) {
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelManagedBy] = ManagedBy
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationVersion] = version
	object.SetAnnotations(annotations)
	unstructured.RemoveNestedField(object.Object, "status")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
}
