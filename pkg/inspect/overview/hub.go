// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package overview reads the hub for the kubectl plugin and the console, as the user: members with
// their tunnels, placements, bindings and Works. Each question takes a few requests, independent
// of the number of members.
package overview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
	"fleetgate.io/fleetgate/pkg/kube/nearest"
)

const (
	// maxParallel is how many requests are in flight for one question.
	maxParallel = 8
	// The limits of kubectl.
	queriesPerSecond, burst = 50, 300
)

// Hub is a client of the hub with the user's credentials.
type Hub struct {
	client.WithWatch
	// Config is the configuration for the hub.
	Config *rest.Config
}

// Connect reads the kubeconfig. It makes no request. Kinds other than those of a fleet are
// discovered when they are needed, and cached where kubectl caches them.
func Connect(getter genericclioptions.RESTClientGetter) (*Hub, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig: %w", err)
	}
	discovered, err := getter.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("preparing discovery for the hub at %s: %w", config.Host, err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = queriesPerSecond, burst
	kinds, err := Scheme()
	if err != nil {
		return nil, err
	}
	c, err := newClient(config, kinds, mapper{RESTMapper: discovered, own: ownKinds()})
	if err != nil {
		return nil, err
	}
	return &Hub{WithWatch: c, Config: config}, nil
}

// Scheme has the kinds that the plugin reads.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme,
		registrationv1alpha1.AddToScheme, authenticationv1beta1.AddToScheme, gatewayv1alpha1.AddToScheme, viewv1alpha1.AddToScheme, metav1.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return scheme, nil
}

// Member reads a member. If it does not exist, the error suggests similar names.
func (h *Hub) Member(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) {
		names, listErr := h.Names(ctx, clusterv1beta1.GroupVersion.WithKind("MemberCluster"), "")
		if listErr != nil {
			return nil, fmt.Errorf("reading member %q: %w", name, notFoundOr(err, listErr))
		}
		return nil, nearest.NotFound("member", name, names, "kubectl fleetgate members")
	}
	if err != nil {
		return nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	return member, nil
}

// notFoundOr returns the error to report if an object was not found and the list failed, too. If
// the list was not found either, the cluster is not a hub.
func notFoundOr(err, listErr error) error {
	if apierrors.IsNotFound(listErr) {
		return listErr
	}
	return err
}

// Names lists the names of a kind without reading the objects. Names of namespaced objects have the
// namespace in front. An empty namespace selects all.
func (h *Hub) Names(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]string, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := h.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		name := list.Items[i].Name
		if ns := list.Items[i].Namespace; ns != "" {
			name = ns + "/" + name
		}
		names = append(names, name)
	}
	return names, nil
}

// Placement reads a placement by the name that users write: shop is a ClusterResourcePlacement,
// team-a/shop a ResourcePlacement. If it does not exist, the error suggests similar names.
func (h *Hub) Placement(ctx context.Context, name string, options ...client.GetOption) (placementv1beta1.PlacementObject, error) {
	var placement placementv1beta1.PlacementObject = &placementv1beta1.ClusterResourcePlacement{}
	kind, key := "ClusterResourcePlacement", keyOf(name)
	if key.Namespace != "" {
		placement, kind = &placementv1beta1.ResourcePlacement{}, "ResourcePlacement"
	}
	err := h.Get(ctx, key, placement, options...)
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return nil, fmt.Errorf("reading placement %q: %w", name, err)
		}
		return placement, nil
	}
	names, listErr := h.PlacementNames(ctx)
	if listErr != nil {
		return nil, fmt.Errorf("reading %s %q: %w", kind, name, notFoundOr(err, listErr))
	}
	return nil, nearest.NotFound("placement", name, names, "kubectl get clusterresourceplacements,resourceplacements -A")
}

// keyOf parses a name in the form that Placement accepts.
func keyOf(name string) client.ObjectKey {
	if namespace, base, namespaced := strings.Cut(name, "/"); namespaced {
		return client.ObjectKey{Namespace: namespace, Name: base}
	}
	return client.ObjectKey{Name: name}
}

// PlacementNames lists those of both scopes, in the form that Placement accepts.
func (h *Hub) PlacementNames(ctx context.Context) ([]string, error) {
	wide, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), "")
	if err != nil {
		return nil, err
	}
	narrow, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("ResourcePlacement"), "")
	// A user who may read only one of the two scopes gets that one.
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return append(wide, narrow...), nil
}

// IsTemporary reports whether a request may succeed if it is retried: the hub is overloaded, is
// restarting or is temporarily unreachable.
func IsTemporary(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	var network net.Error
	return errors.As(err, &network) && network.Timeout() || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// together runs functions, a few at a time, and returns the first error.
func together(ctx context.Context, functions ...func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for _, function := range functions {
		group.Go(func() error { return function(ctx) })
	}
	return group.Wait()
}

// restClient makes requests without a type.
func (h *Hub) restClient() (*rest.RESTClient, error) {
	config := rest.CopyConfig(h.Config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	restClient, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub at %s: %w", config.Host, err)
	}
	return restClient, nil
}

// on is the path of a resource through the hub, on a member or over many. The name of the view is
// escaped, so that it is one path segment whatever it contains.
func (h *Hub) on(to memberconfig.Target, path ...string) (string, error) {
	behindHub, _ := to.Paths()
	base, _, err := rest.DefaultServerUrlFor(h.Config)
	if err != nil {
		return "", fmt.Errorf("reading the hub's URL: %w", err)
	}
	return strings.TrimSuffix(base.EscapedPath(), "/") + behindHub + "/" + strings.Join(path, "/"), nil
}

// Changes watches objects on a member, or over many, and calls tell on changes until the watch
// ends. It does not report what has changed. The error is why the watch ended.
func (h *Hub) Changes(ctx context.Context, notify func(), to memberconfig.Target, params map[string]string, path ...string) error {
	restClient, err := h.restClient()
	if err != nil {
		return err
	}
	address, err := h.on(to, path...)
	if err != nil {
		return err
	}
	request := restClient.Get().RequestURI(address).Param("watch", "true").SetHeader("Accept", "application/json")
	for name, value := range params {
		request = request.Param(name, value)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for buffer := make([]byte, 64<<10); ; {
		n, err := stream.Read(buffer)
		if n > 0 {
			notify()
		}
		if err != nil {
			return err
		}
	}
}

// GetTable reads objects of a member, or of many, as a table like kubectl get. It also returns the
// warnings of the gateway.
func (h *Hub) GetTable(ctx context.Context, to memberconfig.Target, params map[string]string, path ...string) (*metav1.Table, []string, error) {
	restClient, err := h.restClient()
	if err != nil {
		return nil, nil, err
	}
	address, err := h.on(to, path...)
	if err != nil {
		return nil, nil, err
	}
	request := restClient.Get().RequestURI(address).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	for name, value := range params {
		request = request.Param(name, value)
	}
	result := request.Do(ctx)
	var warnings []string
	for _, w := range result.Warnings() {
		warnings = append(warnings, w.Text)
	}
	text, err := result.Raw()
	if err != nil {
		return nil, warnings, err
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(text, table); err != nil {
		return nil, warnings, fmt.Errorf("reading the table: %w", err)
	}
	return table, warnings, nil
}
