// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

var (
	_ rest.Scoper               = (*gatewayREST)(nil)
	_ rest.Getter               = (*gatewayREST)(nil)
	_ rest.Lister               = (*gatewayREST)(nil)
	_ rest.Watcher              = (*gatewayREST)(nil)
	_ rest.SingularNameProvider = (*gatewayREST)(nil)
	_ rest.Getter               = (*healthREST)(nil)
	_ rest.Connecter            = (*proxyREST)(nil)
)

// Storage returns the storage of each resource of the group.
func (h *Handler) Storage() map[string]rest.Storage {
	return map[string]rest.Storage{
		gatewayv1alpha1.Resource: &gatewayREST{members: h.config.Members, liveness: h.config.Liveness},
		gatewayv1alpha1.Resource + "/" + gatewayv1alpha1.SubresourceHealth: &healthREST{handler: h},
		gatewayv1alpha1.Resource + "/" + gatewayv1alpha1.SubresourceProxy:  &proxyREST{},
	}
}

// gatewayREST serves ClusterGateways, read-only.
type gatewayREST struct {
	members  *Inventory
	liveness Liveness
}

func (r *gatewayREST) New() runtime.Object { return &gatewayv1alpha1.ClusterGateway{} }

func (r *gatewayREST) NewList() runtime.Object { return &gatewayv1alpha1.ClusterGatewayList{} }

func (r *gatewayREST) Destroy() {}

// NamespaceScoped is false, because members belong to the whole hub.
func (r *gatewayREST) NamespaceScoped() bool { return false }

func (r *gatewayREST) GetSingularName() string { return "clustergateway" }

func (r *gatewayREST) Get(_ context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	found, ok := r.members.get(name)
	if !ok {
		return nil, notFound(name)
	}
	return r.now(found), nil
}

func (r *gatewayREST) List(_ context.Context, options *metainternalversion.ListOptions) (runtime.Object, error) {
	matches, err := Matcher(options)
	if err != nil {
		return nil, err
	}
	all, version := r.members.list()
	list := &gatewayv1alpha1.ClusterGatewayList{Items: []gatewayv1alpha1.ClusterGateway{}}
	list.ResourceVersion = version
	for _, found := range all {
		if matches(found.member) {
			list.Items = append(list.Items, *r.now(found))
		}
	}
	return list, nil
}

// now is a view at the time of a read. A member without a tunnel, and without one a moment ago, is
// not healthy, whatever its agent has reported: this replica notices a lost tunnel before the hub
// notices a missing heartbeat in the Lease. Watches do not report it.
func (r *gatewayREST) now(found state) *gatewayv1alpha1.ClusterGateway {
	gateway := view(found)
	if gateway.Status.Healthy && !r.liveness.Reachable(gateway.Name) && !r.liveness.Expected(gateway.Name) {
		gateway.Status = gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}
	}
	return gateway
}

func (r *gatewayREST) Watch(_ context.Context, options *metainternalversion.ListOptions) (watch.Interface, error) {
	matches, err := Matcher(options)
	if err != nil {
		return nil, err
	}
	o := watchOptions{
		matches:  matches,
		view:     func(s state) runtime.Object { return view(s) },
		bookmark: bookmark,
	}
	if options != nil {
		o.from = options.ResourceVersion
		o.initial = options.SendInitialEvents != nil && *options.SendInitialEvents
		o.bookmarks = options.AllowWatchBookmarks
	}
	w, err := r.members.watch(o)
	if err != nil {
		return nil, err
	}
	return w, nil
}

func bookmark(resourceVersion string) runtime.Object {
	return &gatewayv1alpha1.ClusterGateway{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: resourceVersion,
		Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// Matcher selects members by the selectors of a list. It refuses field selectors on anything but the name.
func Matcher(options *metainternalversion.ListOptions) (func(*clusterv1beta1.MemberCluster) bool, error) {
	byLabel, byField := labels.Everything(), fields.Everything()
	if options != nil && options.LabelSelector != nil {
		byLabel = options.LabelSelector
	}
	if options != nil && options.FieldSelector != nil {
		byField = options.FieldSelector
	}
	for _, requirement := range byField.Requirements() {
		if requirement.Field != "metadata.name" {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field selector %q: only metadata.name is known", requirement.Field))
		}
	}
	return func(m *clusterv1beta1.MemberCluster) bool {
		return byLabel.Matches(labels.Set(m.Labels)) && byField.Matches(fields.Set{"metadata.name": m.Name})
	}, nil
}

// ConvertToTable prints the columns of the upstream API.
func (r *gatewayREST) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		table.ColumnDefinitions = gatewayColumns
	}
	if list, err := meta.ListAccessor(object); err == nil {
		table.ResourceVersion = list.GetResourceVersion()
		table.Continue = list.GetContinue()
	}
	var err error
	if !meta.IsListType(object) {
		err = appendRow(table, object)
	} else {
		err = meta.EachListItem(object, func(item runtime.Object) error { return appendRow(table, item) })
	}
	if err != nil {
		return nil, fmt.Errorf("printing ClusterGateways: %w", err)
	}
	return table, nil
}

var gatewayColumns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "the member"},
	{Name: "Provider", Type: "string", Description: "who runs the cluster"},
	{Name: "Credential-Type", Type: "string", Description: "what the gateway shows to the member"},
	{Name: "Endpoint-Type", Type: "string", Description: "how the gateway reaches the member"},
	{Name: "Healthy", Type: "string", Description: "whether a request to the member would succeed"},
}

func appendRow(table *metav1.Table, object runtime.Object) error {
	gateway, ok := object.(*gatewayv1alpha1.ClusterGateway)
	if !ok {
		return fmt.Errorf("unexpected %T", object)
	}
	var credential, endpoint string
	if c := gateway.Spec.Access.Credential; c != nil {
		credential = string(c.Type)
	}
	if e := gateway.Spec.Access.Endpoint; e != nil {
		endpoint = string(e.Type)
	}
	table.Rows = append(table.Rows, metav1.TableRow{
		Cells: []any{
			gateway.Name, gateway.Spec.Provider, credential, endpoint, strconv.FormatBool(gateway.Status.Healthy),
		},
		Object: runtime.RawExtension{Object: object},
	})
	return nil
}

func notFound(name string) error {
	return apierrors.NewNotFound(gatewayv1alpha1.GroupVersion.WithResource(gatewayv1alpha1.Resource).GroupResource(), name)
}

// proxyREST publishes the subresource in discovery, OpenAPI and RBAC tools. Handler takes its
// requests before they get here: a Connecter would refuse dryRun and clean the path.
type proxyREST struct{}

func (r *proxyREST) New() runtime.Object { return &gatewayv1alpha1.ClusterGatewayProxyOptions{} }

func (r *proxyREST) Destroy() {}

// ConnectMethods are all methods that Handler forwards.
func (r *proxyREST) ConnectMethods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
}

// NewConnectOptions returns the options; their path is the rest of the URL path.
func (r *proxyREST) NewConnectOptions() (runtime.Object, bool, string) {
	return &gatewayv1alpha1.ClusterGatewayProxyOptions{}, true, "path"
}

// Connect refuses requests that Handler did not recognise.
func (r *proxyREST) Connect(context.Context, string, runtime.Object, rest.Responder) (http.Handler, error) {
	return nil, apierrors.NewBadRequest("a request for a member must begin with " + paths.Member + "<member>/proxy")
}
