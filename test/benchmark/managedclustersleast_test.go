// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// leastKlusterletWrites are the writes that any hub needs for a cluster with a klusterlet: ten of
// the hub, two of an administrator, five of the klusterlet.
const leastKlusterletWrites = 10 + 2 + 5

// csrTexts creates certificate requests with one key.
type csrTexts struct{ key *ecdsa.PrivateKey }

func newCSRTexts(b *testing.B) *csrTexts {
	b.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	return &csrTexts{key}
}

func (c *csrTexts) of(subject pkix.Name) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, c.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// klusterletWrites are the writes for one cluster.
type klusterletWrites struct {
	client   client.Client
	name     string
	requests *csrTexts

	csr *certificatesv1.CertificateSigningRequest
}

// all sends them without waiting for anything.
func (w *klusterletWrites) all(ctx context.Context) error {
	for _, write := range []func(context.Context) error{
		w.register, w.ask, w.hubMarks, w.hubTaints, w.approve, w.accept, w.hubRights, w.hubAccepts, w.hubLease, w.reportJoined, w.renew, w.reportAvailable, w.hubUntaints,
	} {
		if err := write(ctx); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func (w *klusterletWrites) register(ctx context.Context) error {
	return w.client.Create(ctx, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{clusterv1.ClusterSetLabel: "default"}},
		Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: 60, ManagedClusterClientConfigs: []clusterv1.ClientConfig{
			{URL: "https://" + w.name + ".example.com:6443", CABundle: []byte("ca")},
		}},
	})
}

func (w *klusterletWrites) ask(ctx context.Context) error {
	request, err := w.requests.of(pkix.Name{
		CommonName:   "system:open-cluster-management:" + w.name + ":bench",
		Organization: []string{"system:open-cluster-management:" + w.name, "system:open-cluster-management:managed-clusters"},
	})
	if err != nil {
		return err
	}
	w.csr = &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: w.name + "-", Labels: map[string]string{clusterv1.ClusterNameLabel: w.name}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Request: request,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	return w.client.Create(ctx, w.csr)
}

func (w *klusterletWrites) approve(ctx context.Context) error {
	w.csr.Status.Conditions = append(w.csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Benchmark",
	})
	return w.client.SubResource("approval").Update(ctx, w.csr)
}

func (w *klusterletWrites) accept(ctx context.Context) error {
	return w.patch(ctx, `{"spec":{"hubAcceptsClient":true}}`)
}

func (w *klusterletWrites) patch(ctx context.Context, patch string) error {
	return w.client.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: w.name}}, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (w *klusterletWrites) hubMarks(ctx context.Context) error {
	return w.patch(ctx, fmt.Sprintf(`{"metadata":{"finalizers":[%q,%q]}}`, clusterv1.ResourceCleanupFinalizer, clusterv1.GarbageFinalizer))
}

func (w *klusterletWrites) hubTaints(ctx context.Context) error {
	return w.patch(ctx, fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"effect":"NoSelect"}]}}`, clusterv1.TaintUnreachable))
}

func (w *klusterletWrites) hubUntaints(ctx context.Context) error {
	return w.patch(ctx, `{"spec":{"taints":null}}`)
}

func (w *klusterletWrites) hubAccepts(ctx context.Context) error {
	return w.condition(ctx, metav1.Condition{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAccepted, Message: "Accepted by hub cluster admin"})
}

// hubRights creates the namespace, a role and its binding, and two bindings inside.
func (w *klusterletWrites) hubRights(ctx context.Context) error {
	const prefix = "open-cluster-management:managedcluster:"
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: w.name}}
	}
	subjects := []rbacv1.Subject{
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:open-cluster-management:" + w.name},
		{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "open-cluster-management:" + w.name},
	}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: prefix + name}
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"certificatesigningrequests"}, Verbs: []string{"create", "get", "list", "watch"}},
		{APIGroups: []string{"register.open-cluster-management.io"}, Resources: []string{"managedclusters/clientcertificates"}, Verbs: []string{"renew"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters"}, ResourceNames: []string{w.name}, Verbs: []string{"get", "list", "update", "watch"}},
		{APIGroups: []string{clusterv1.GroupName}, Resources: []string{"managedclusters/status"}, ResourceNames: []string{w.name}, Verbs: []string{"patch", "update"}},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: named("", w.name)},
		&rbacv1.ClusterRole{ObjectMeta: named("", prefix+w.name), Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named("", prefix+w.name), RoleRef: role(w.name), Subjects: subjects},
		&rbacv1.RoleBinding{ObjectMeta: named(w.name, prefix+w.name+":registration"), RoleRef: role("registration"), Subjects: subjects},
		&rbacv1.RoleBinding{ObjectMeta: named(w.name, prefix+w.name+":work"), RoleRef: role("work"), Subjects: subjects},
	} {
		if err := w.client.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (w *klusterletWrites) hubLease(ctx context.Context) error {
	return w.client.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: clusterv1.ClusterLease, Labels: map[string]string{clusterv1.ClusterNameLabel: w.name}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To(clusterv1.ClusterLease), RenewTime: ptr.To(metav1.NowMicro())},
	})
}

func (w *klusterletWrites) reportJoined(ctx context.Context) error {
	return w.condition(ctx, metav1.Condition{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonJoined, Message: "Managed cluster joined"})
}

func (w *klusterletWrites) reportAvailable(ctx context.Context) error {
	return w.condition(ctx, metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAvailable, Message: "Managed cluster is available"})
}

// condition reads the cluster and writes one of its conditions, as klusterlets do.
func (w *klusterletWrites) condition(ctx context.Context, condition metav1.Condition) error {
	cluster := &clusterv1.ManagedCluster{}
	if err := w.client.Get(ctx, client.ObjectKey{Name: w.name}, cluster); err != nil {
		return err
	}
	base := cluster.DeepCopy()
	meta.SetStatusCondition(&cluster.Status.Conditions, condition)
	cluster.Status.Version.Kubernetes = "v1.36.3"
	// The list of conditions is replaced as a whole, so a conflicting write must be detected.
	err := w.client.Status().Patch(ctx, cluster, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return w.condition(ctx, condition)
	}
	return err
}

func (w *klusterletWrites) renew(ctx context.Context) error { return w.renewAt(ctx, time.Now()) }

func (w *klusterletWrites) renewAt(ctx context.Context, now time.Time) error {
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	return w.client.Patch(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: clusterv1.ClusterLease}}, client.RawPatch(types.MergePatchType, patch))
}
