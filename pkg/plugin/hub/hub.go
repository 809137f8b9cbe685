// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub is what the kubectl plugin reads of the hub, as the user: members with their
// tunnels, placements, bindings and Works. Each question costs a few requests however many
// members there are.
package hub

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
	"fleetgate.io/fleetgate/pkg/memberconfig"
	"fleetgate.io/fleetgate/pkg/plugin/nearest"
)

const (
	// atOnce is how many requests are under way for one question.
	atOnce = 8
	// What kubectl allows itself.
	queriesPerSecond, burst = 50, 300
)

// Hub is the hub as the user of a kubeconfig has it.
type Hub struct {
	client.WithWatch
	// Config leads to the hub.
	Config *rest.Config
}

// Connect reads the kubeconfig. It asks the hub nothing. Which kinds it has besides those of a
// fleet is asked when one is needed, and kept where kubectl does.
func Connect(getter genericclioptions.RESTClientGetter) (*Hub, error) {
	config, err := getter.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading your kubeconfig: %w", err)
	}
	discovered, err := getter.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("preparing to ask the hub at %s which kinds it has: %w", config.Host, err)
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

// Scheme has the kinds that people look at.
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

// Member reads one. If there is none, the error proposes the nearest names.
func (h *Hub) Member(ctx context.Context, name string) (*clusterv1beta1.MemberCluster, error) {
	member := &clusterv1beta1.MemberCluster{}
	err := h.Get(ctx, client.ObjectKey{Name: name}, member)
	if apierrors.IsNotFound(err) {
		names, listErr := h.Names(ctx, clusterv1beta1.GroupVersion.WithKind("MemberCluster"), "")
		if listErr != nil {
			return nil, fmt.Errorf("reading member %q: %w", name, whyNone(err, listErr))
		}
		return nil, nearest.NotFound("member", name, names, "kubectl fleetgate members")
	}
	if err != nil {
		return nil, fmt.Errorf("reading member %q: %w", name, err)
	}
	return member, nil
}

// whyNone says why an object is not there of which the list cannot be read either: on a cluster
// that is no hub there is no list.
func whyNone(err, listErr error) error {
	if apierrors.IsNotFound(listErr) {
		return listErr
	}
	return err
}

// Names lists the names of a kind, without the objects; with a namespace in front where
// there is one. Empty namespace: of all.
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

// Placement reads one as people name it: shop is a ClusterResourcePlacement, team-a/shop a
// ResourcePlacement. If there is none, the error proposes the nearest names.
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
		return nil, fmt.Errorf("reading %s %q: %w", kind, name, whyNone(err, listErr))
	}
	return nil, nearest.NotFound("placement", name, names, "kubectl get clusterresourceplacements,resourceplacements -A")
}

// keyOf reads a name as people give it to Placement.
func keyOf(name string) client.ObjectKey {
	if namespace, base, namespaced := strings.Cut(name, "/"); namespaced {
		return client.ObjectKey{Namespace: namespace, Name: base}
	}
	return client.ObjectKey{Name: name}
}

// PlacementNames are those of both scopes, as Placement takes them.
func (h *Hub) PlacementNames(ctx context.Context) ([]string, error) {
	wide, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), "")
	if err != nil {
		return nil, err
	}
	narrow, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("ResourcePlacement"), "")
	// Who may read only one of the two scopes has that one.
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return append(wide, narrow...), nil
}

// MayPass says whether an error of a request may be gone a moment later: the hub is busy,
// starts again, or is not reached just now.
func MayPass(err error) bool {
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
	group.SetLimit(atOnce)
	for _, function := range functions {
		group.Go(func() error { return function(ctx) })
	}
	return group.Wait()
}

// asker makes requests for what no type is known of.
func (h *Hub) asker() (*rest.RESTClient, error) {
	config := rest.CopyConfig(h.Config)
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, "/"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	asker, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", config.Host, err)
	}
	return asker, nil
}

// on is the path of something behind the hub, on a member or over many. The view's name is
// escaped in it: it is a segment of the path whatever is in it.
func (h *Hub) on(to memberconfig.Target, path ...string) (string, error) {
	behindHub, _ := to.Paths()
	base, _, err := rest.DefaultServerUrlFor(h.Config)
	if err != nil {
		return "", fmt.Errorf("reading the hub's URL: %w", err)
	}
	return strings.TrimSuffix(base.EscapedPath(), "/") + behindHub + "/" + strings.Join(path, "/"), nil
}

// Changes watches objects on a member, or over many, and tells of changes until the watch
// ends; what has changed it does not say. The error says why it ended.
func (h *Hub) Changes(ctx context.Context, tell func(), to memberconfig.Target, params map[string]string, path ...string) error {
	asker, err := h.asker()
	if err != nil {
		return err
	}
	address, err := h.on(to, path...)
	if err != nil {
		return err
	}
	request := asker.Get().RequestURI(address).Param("watch", "true").SetHeader("Accept", "application/json")
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
			tell()
		}
		if err != nil {
			return err
		}
	}
}

// GetTable asks a member, or many, for a table of objects, as kubectl get does. It returns
// what the gateway warns of, too.
func (h *Hub) GetTable(ctx context.Context, to memberconfig.Target, params map[string]string, path ...string) (*metav1.Table, []string, error) {
	asker, err := h.asker()
	if err != nil {
		return nil, nil, err
	}
	address, err := h.on(to, path...)
	if err != nil {
		return nil, nil, err
	}
	request := asker.Get().RequestURI(address).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
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
