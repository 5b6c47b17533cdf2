"""Words of the embedded corpus, English and French side by side, and how they inflect."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages; `en` is its lemma."""

    en: str
    en_plural: str
    fr: str
    fr_plural: str
    gender: str
    kind: str


class Adjective(NamedTuple):
    """An adjective in both languages; `fr` holds m, f, m plural, f plural, m before a vowel."""

    en: str
    fr: tuple[str, str, str, str, str]
    is_before_noun: bool
    kinds: tuple[str, ...]

    def form(self, gender: str, is_plural: bool) -> str:
        """The French form that agrees with a noun, not minding a vowel that follows."""
        return self.fr[2 * is_plural + (gender == "f")]


class Verb(NamedTuple):
    """A verb in both languages and what it takes; `name` is its lemma.

    The French finite forms stand in the order je, tu, il, nous, vous, ils. An adjunct of "!" marks a
    verb of lasting states, which has no tense but the present.
    """

    name: str
    en: str
    en_s: str
    en_past: str
    en_participle: str
    en_ing: str
    particle: str
    fr: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    takes_etre: bool
    is_reflexive: bool
    preposition: str
    complement: tuple[str, ...]
    adjunct: str
    topic: str

    @property
    def lemma(self) -> str:
        """As it stands in the pairs of words that meet."""
        return f"v:{self.name}"


def words(text: str) -> tuple[str, ...]:
    """The words of a table."""
    return tuple(text.split())


def table_lines(table: str) -> list[str]:
    """The lines of a table; an indented line goes on with the one above."""
    return table.strip().replace("\n    ", " ").splitlines()


def table_rows(table: str) -> list[list[str]]:
    """The cells of each line of a table."""
    return [line.split("|") for line in table_lines(table)]


def parse_pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Split "English|French; …" into pairs."""
    return tuple((en, fr) for en, fr in (entry.split("|") for entry in table.split("; ")))


def parse_tables(table: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Split lines "name: English|French; …" into pairs by name."""
    return {name: parse_pairs(pairs) for name, _, pairs in (x.partition(": ") for x in table_lines(table))}


# ---- Tables ---------------------------------------------------------------------------------------

# kind: French:gender:English, each with "/plural" where the rule does not give it.
_NOUNS = """
family: mère:f:mother, père:m:father, frère:m:brother, sœur:f:sister, fils/fils:m:son, fille:f:daughter,
    oncle:m:uncle, tante:f:aunt, cousin:m:cousin, femme:f:wife/wives, neveu:m:nephew, nièce:f:niece,
    grand-père/grands-pères:m:grandfather, grand-mère/grands-mères:f:grandmother, voisin:m:neighbour,
    ami:m:friend, collègue:m:colleague
worker: médecin:m:doctor, infirmière:f:nurse, professeur:m:teacher, étudiant:m:student, avocat:m:lawyer,
    boulanger:m:baker, vendeur:m:salesman/salesmen, vendeuse:f:saleswoman/saleswomen, serveur:m:waiter,
    serveuse:f:waitress, facteur:m:postman/postmen, ingénieur:m:engineer, dentiste:m:dentist,
    policier:m:policeman/policemen, journaliste:m:journalist, chanteuse:f:singer, acteur:m:actor,
    actrice:f:actress, directrice:f:headmistress, directeur:m:headmaster, pilote:m:pilot,
    agriculteur:m:farmer, mécanicien:m:mechanic, coiffeuse:f:hairdresser, pharmacien:m:pharmacist,
    secrétaire:f:secretary, chauffeur:m:driver, musicien:m:musician, architecte:m:architect,
    danseuse:f:dancer, boucher:m:butcher
someone: client:m:customer, touriste:m:tourist, garçon:m:boy, dame:f:lady, homme:m:man/men, élève:m:pupil,
    invité:m:guest, voyageur:m:traveller
hot_drink: café:m:coffee, thé:m:tea, chocolat chaud:m:hot chocolate, tisane:f:herbal tea
cold_drink: eau:f:water, lait:m:milk, jus d'orange:m:orange juice, bière:f:beer, limonade:f:lemonade,
    cidre:m:cider, jus de pomme:m:apple juice, eau minérale:f:mineral water, vin:m:wine
food: poisson:m:fish, poulet:m:chicken, viande:f:meat, riz:m:rice, soupe:f:soup, bœuf:m:beef, veau:m:veal,
    porc:m:pork, saumon:m:salmon, agneau:m:lamb, thon:m:tuna, purée:f:mashed potato
snack_food: pain:m:bread, fromage:m:cheese, glace:f:ice cream, chocolat:m:chocolate, miel:m:honey,
    confiture:f:jam, crème:f:cream, beurre:m:butter, salade:f:salad, jambon:m:ham
seasoning: sel:m:salt, huile:f:oil, poivre:m:pepper, vinaigre:m:vinegar, moutarde:f:mustard, ail:m:garlic
staple: sucre:m:sugar, farine:f:flour, savon:m:soap, papier:m:paper
fruit: pomme:f:apple, poire:f:pear, banane:f:banana, orange:f:orange, fraise:f:strawberry, cerise:f:cherry,
    pêche:f:peach, melon:m:melon, ananas:m:pineapple, abricot:m:apricot, framboise:f:raspberry, prune:f:plum,
    tomate:f:tomato/tomatoes, figue:f:fig
vegetable: carotte:f:carrot, oignon:m:onion, champignon:m:mushroom, concombre:m:cucumber, haricot:m:bean,
    pomme de terre/pommes de terre:f:potato/potatoes, aubergine:f:aubergine, artichaut:m:artichoke
cake: gâteau:m:cake, tarte:f:tart, pizza:f:pizza, quiche:f:quiche
snack: croissant:m:croissant, sandwich:m:sandwich, beignet:m:doughnut, biscuit:m:biscuit, crêpe:f:pancake,
    omelette:f:omelette, yaourt:m:yoghurt, hamburger:m:hamburger
clothes: chemise:f:shirt, robe:f:dress, jupe:f:skirt, manteau:m:coat, chapeau:m:hat, veste:f:jacket,
    pull:m:sweater, cravate:f:tie, écharpe:f:scarf/scarves, ceinture:f:belt, casquette:f:cap,
    imperméable:m:raincoat, uniforme:m:uniform, costume:m:suit
pair: chaussure:f:shoe, chaussette:f:sock, botte:f:boot, gant:m:glove, sandale:f:sandal, pantoufle:f:slipper
book: livre:m:book, journal:m:newspaper, magazine:m:magazine, dictionnaire:m:dictionary
writing: roman:m:novel, poème:m:poem, conte:m:tale, article:m:article
mail: lettre:f:letter, message:m:message, courriel:m:email
card: carte postale/cartes postales:f:postcard, invitation:f:invitation
stationery: stylo:m:pen, crayon:m:pencil, cahier:m:notebook, gomme:f:rubber, règle:f:ruler,
    enveloppe:f:envelope, feutre:m:felt-tip pen
belonging: clé:f:key, téléphone:m:phone, sac:m:bag, valise:f:suitcase, parapluie:m:umbrella,
    passeport:m:passport, portefeuille:m:wallet, montre:f:watch, bague:f:ring,
    appareil photo/appareils photo:m:camera, sac à dos/sacs à dos:m:backpack, collier:m:necklace,
    serviette:f:towel, briquet:m:lighter
machine: ordinateur:m:computer, radio:f:radio, télévision:f:television, lampe:f:lamp, réfrigérateur:m:fridge,
    four:m:oven, machine à laver/machines à laver:f:washing machine, imprimante:f:printer,
    aspirateur:m:vacuum cleaner, horloge:f:clock, réveil:m:alarm clock
furniture: table:f:table, chaise:f:chair, lit:m:bed, armoire:f:wardrobe, canapé:m:sofa, fauteuil:m:armchair,
    bureau:m:desk, étagère:f:shelf/shelves, commode:f:chest of drawers/chests of drawers
textile: tapis:m:carpet, rideau:m:curtain, couverture:f:blanket, coussin:m:cushion, nappe:f:tablecloth
dish: assiette:f:plate, verre:m:glass, tasse:f:cup, bouteille:f:bottle, bol:m:bowl, casserole:f:saucepan,
    poêle:f:frying pan, théière:f:teapot, vase:m:vase
cutlery: couteau:m:knife/knives, fourchette:f:fork, cuillère:f:spoon
opening: porte:f:door, fenêtre:f:window, tiroir:m:drawer, portail:m:gate
vehicle: voiture:f:car, vélo:m:bike, moto:f:motorbike, camion:m:lorry, bateau:m:boat
ride: train:m:train, bus:m:bus, avion:m:plane, taxi:m:taxi, métro:m:underground, tramway:m:tram
pet: chien:m:dog, chat:m:cat, oiseau:m:bird, lapin:m:rabbit, tortue:f:tortoise, perroquet:m:parrot,
    hamster:m:hamster, cochon d'Inde/cochons d'Inde:m:guinea pig
farm: cheval:m:horse, vache:f:cow, canard:m:duck, poule:f:hen, chèvre:f:goat, âne:m:donkey, cochon:m:pig,
    oie:f:goose/geese
place: gare:f:station, banque:f:bank, bibliothèque:f:library, musée:m:museum, hôpital:m:hospital,
    pharmacie:f:pharmacy, boulangerie:f:bakery, marché:m:market, supermarché:m:supermarket,
    restaurant:m:restaurant, hôtel:m:hotel, cinéma:m:cinema, théâtre:m:theatre, poste:f:post office,
    mairie:f:town hall, piscine:f:swimming pool, université:f:university, librairie:f:bookshop,
    boucherie:f:butcher's shop, école:f:school, zoo:m:zoo, boutique:f:boutique
sight: château:m:castle, église:f:church, tour:f:tower, pont:m:bridge, cathédrale:f:cathedral,
    palais:m:palace
room: cuisine:f:kitchen, salon:m:living room, chambre:f:bedroom, garage:m:garage,
    salle à manger/salles à manger:f:dining room, salle de bains/salles de bains:f:bathroom, cave:f:cellar,
    grenier:m:attic, entrée:f:hall
building: maison:f:house, appartement:m:flat, studio:m:studio flat, chalet:m:chalet
area: village:m:village, ville:f:town, quartier:m:neighbourhood, rue:f:street, île:f:island
flower: fleur:f:flower, rose:f:rose, tulipe:f:tulip, orchidée:f:orchid
plant: arbre:m:tree, plante:f:plant, buisson:m:bush
subject: histoire:f:history, géographie:f:geography, musique:f:music, biologie:f:biology, physique:f:physics,
    chimie:f:chemistry, littérature:f:literature, philosophie:f:philosophy, droit:m:law,
    informatique:f:computer science
lesson: leçon:f:lesson, exercice:m:exercise, cours:m:class
query: question:f:question, phrase:f:sentence, mot:m:word
task: problème:m:problem, texte:m:text, règle:f:rule
paper: rapport:m:report, contrat:m:contract, dossier:m:file, document:m:document, facture:f:invoice
event: réunion:f:meeting, fête:f:party, voyage:m:trip, conférence:f:conference, exposition:f:exhibition
show: film:m:film, match/matchs:m:match, spectacle:m:show, concert:m:concert, émission:f:programme
art: tableau:m:painting, photo:f:photo, dessin:m:drawing, statue:f:statue
body: tête:f:head, dos:m:back, ventre:m:stomach, gorge:f:throat, genou/genoux:m:knee, oreille:f:ear,
    main:f:hand, épaule:f:shoulder, jambe:f:leg, bras:m:arm, pied:m:foot/feet, cou:m:neck, nez:m:nose,
    doigt:m:finger, cheville:f:ankle, hanche:f:hip, poignet:m:wrist
remedy: médicament:m:medicine, comprimé:m:tablet, sirop:m:syrup
toy: ballon:m:ball, jouet:m:toy, cadeau:m:present, poupée:f:doll, cerf-volant/cerfs-volants:m:kite
"""

# ^ before the noun; the kinds they may describe: French m[/f[/m plural[/f plural[/m before a vowel]]]]:English
_ADJECTIVES = """
^ plant belonging machine furniture dish cutlery opening vehicle pet farm place room building area flower toy
    textile: petit:small
^ pet farm: gros/grosse:fat
^ plant machine furniture dish cutlery opening vehicle room building place textile: grand:big
^ plant clothes belonging furniture pet farm building area flower art sight textile:
    beau/belle/beaux/belles/bel:beautiful
^ clothes pair book writing belonging machine furniture vehicle paper toy place:
    nouveau/nouvelle/nouveaux/nouvelles/nouvel:new
^ clothes pair book writing belonging machine furniture vehicle building sight:
    vieux/vieille/vieux/vieilles/vieil:old
^ clothes pair flower art room building dish cutlery area textile toy: joli:pretty
^ food snack_food snack cake fruit hot_drink cold_drink book writing show: bon/bonne:good
^ food snack cake hot_drink cold_drink book writing show: mauvais:bad
^ food snack cake book writing show hot_drink event: excellent:excellent
clothes pair belonging furniture dish vehicle flower stationery opening textile toy: rouge:red
clothes pair belonging furniture dish vehicle stationery opening textile toy: bleu:blue, vert:green
clothes pair belonging furniture vehicle pet farm stationery machine: noir:black
clothes pair furniture dish vehicle pet farm flower machine opening building textile: blanc/blanche:white
clothes pair belonging furniture vehicle pet farm building textile: gris:grey
clothes pair belonging furniture vehicle flower dish stationery textile: jaune:yellow
clothes pair flower stationery textile: violet/violette:purple, rose:pink
pet farm furniture: brun:brown
clothes pair belonging machine furniture vehicle building textile: cher/chère:expensive
clothes pair dish cutlery room vehicle textile: propre:clean, sale:dirty
furniture machine: lourd:heavy
clothes pair: léger/légère:light, élégant:elegant
pair: chaud:warm
pair furniture vehicle room building: confortable:comfortable
belonging machine vehicle: pratique:practical
furniture machine vehicle: solide:solid
machine dish furniture: cassé:broken
dish room building: vide:empty
machine furniture building place: moderne:modern
room building area place: calme:quiet
area: tranquille:peaceful
sight: ancien/ancienne:ancient
sight art: magnifique:magnificent
art sight: célèbre:famous
task query book writing show lesson subject art paper event: intéressant:interesting
book writing show lesson paper event: ennuyeux/ennuyeuse:boring
book lesson machine subject: utile:useful
lesson query task subject: facile:easy, difficile:difficult
task query paper mail event lesson: important:important
paper mail: urgent:urgent, secret/secrète:secret
^ mail writing show event: long/longue:long
mail writing: court:short
writing show art toy: amusant:amusing
writing mail person: triste:sad
food snack_food snack cake fruit hot_drink: délicieux/délicieuse:delicious
fruit vegetable: frais/fraîche:fresh
food hot_drink: chaud:hot
food hot_drink cold_drink: froid:cold
fruit: sucré:sweet
food: salé:salty
fruit: mûr:ripe
person: fatigué:tired, malade:ill, heureux/heureuse:happy, inquiet/inquiète:worried, prêt:ready, occupé:busy,
    seul:alone, fâché:angry, nerveux/nerveuse:nervous, absent:absent, pressé:in a hurry, déçu:disappointed
character: gentil/gentille:kind, intelligent:intelligent, timide:shy, drôle:funny, paresseux/paresseuse:lazy,
    sérieux/sérieuse:serious, patient:patient, curieux/curieuse:curious, poli:polite,
    courageux/courageuse:brave, généreux/généreuse:generous, sympathique:nice
"""

# English (/past/participle if irregular) and particle|French (* with être) and preposition|what it takes,
# each kind after its determiner or preposition|adjunct|topic
_VERBS = """
eat/ate/eaten|manger|food snack_food fruit vegetable snack cake|room|restaurant
drink/drank/drunk|boire|hot_drink cold_drink|room|restaurant
order|commander|food cold_drink snack cake|restaurant|restaurant
cook|cuisiner|food vegetable|.|restaurant
taste|goûter|the:food the:snack_food the:cake|.|restaurant
prepare|préparer|food snack cake hot_drink the:event|.|restaurant
serve|servir|food snack hot_drink cold_drink|restaurant|restaurant
cut/cut/cut|couper|the:vegetable the:cake|.|restaurant
buy/bought/bought|acheter|food snack_food fruit vegetable snack staple seasoning cold_drink stationery
    flower cake|shop|shops
buy/bought/bought|acheter|clothes pair book belonging machine furniture vehicle toy textile plant card|.|shops
sell/sold/sold|vendre|clothes pair fruit vegetable book flower snack_food|market|shops
sell/sold/sold|vendre|building furniture vehicle machine farm|.|shops
pay for/paid/paid|payer|the:clothes the:belonging the:furniture the:machine|.|shops
choose/chose/chosen|choisir|clothes pair belonging furniture book toy textile|shop|shops
wear/wore/worn|porter|clothes pair|.|shops
try on/tried/tried|essayer|clothes pair|shop|shops
look for|chercher|clothes pair belonging book stationery the:place toy|.|home
find/found/found|trouver|the:clothes the:pair the:belonging the:book the:stationery|.|home
lose/lost/lost|perdre|the:belonging the:stationery|park|travel
forget/forgot/forgotten|oublier|the:belonging the:stationery the:clothes|.|travel
take/took/taken|prendre|the:ride remedy|.|travel
miss|rater|the:ride|.|travel
visit|visiter|the:sight area country|.|travel
go/went/gone|aller*|to:place to:city to:country|with|travel
come back/came/come|revenir*|from:city|with|travel
stay|rester*|in:city home|with|travel
arrive|arriver*|at:place in:city|with|travel
leave for/left/left|partir* pour|land city|with|travel
work|travailler|at:place in:city|with|work
write/wrote/written|écrire|writing mail card|room|school
read/read/read|lire|book writing mail paper|room|school
finish|finir|the:book the:writing the:lesson the:paper|.|school
begin/began/begun|commencer|the:lesson the:writing the:paper|.|school
study|étudier|gen:subject|library|school
learn|apprendre|gen:language|with|school
teach/taught/taught|enseigner|gen:subject gen:language|.|school
understand/understood/understood|comprendre|the:lesson the:query the:task the:mail gen:language|.|school
explain|expliquer|the:lesson the:query the:task the:paper|.|school
repeat|répéter|the:query|.|school
correct|corriger|the:lesson the:writing|.|school
speak/spoke/spoken|parler|language|with|school
sign|signer|the:paper|office|work
send/sent/sent|envoyer|mail paper toy card|.|work
receive|recevoir|mail toy paper card|.|work
print|imprimer|the:paper the:mail the:writing|office|work
organise|organiser|event|.|work
translate|traduire|the:mail the:paper the:writing|.|work
call|appeler|person|.|family
help|aider|person|.|family
see/saw/seen|voir|person pet show|.|family
invite|inviter|person|.|family
wait for|attendre|person the:ride|.|travel
meet/met/met|rencontrer|person|town|family
thank|remercier|person|.|greetings
greet|saluer|person|.|greetings
listen to|écouter|person radio|.|family
visit|rendre visite à|person|.|family
talk to|parler à|person|.|greetings
answer|répondre à|person|.|greetings
telephone|téléphoner à|person|.|family
watch|regarder|show television|home|home
play|jouer à|game|park|family
play|jouer de|instrument|.|family
clean|nettoyer|the:room the:textile the:vehicle|.|home
wash|laver|the:clothes the:dish the:cutlery the:vehicle the:textile|.|home
dry|sécher|the:clothes the:dish the:cutlery|.|home
repair|réparer|the:machine the:vehicle the:furniture|garage|home
open|ouvrir|the:opening the:mail|.|home
close|fermer|the:opening|.|home
use|utiliser|the:machine the:dish the:cutlery the:stationery|.|home
break/broke/broken|casser|the:dish the:machine toy|.|home
paint|peindre|the:opening the:room flower pet|.|home
draw/drew/drawn|dessiner|flower pet farm sight|.|school
photograph|photographier|sight pet farm flower|.|travel
sing/sang/sung|chanter|song|home|family
sleep/slept/slept|dormir|.|bed|health
swim/swam/swum|nager|.|pool|health
run/ran/run|courir|.|park|health
walk|marcher|.|park|health
dance|danser|.|home|family
travel/travelled/travelled|voyager|.|by|travel
rest|se reposer|.|bed|health
get up/got/got|se lever|.|morning|time
wake up/woke/woken|se réveiller|.|morning|time
go to bed/went/gone|se coucher|.|night|time
get dressed/got/got|s'habiller|.|bed|home
hurry|se dépêcher|.|.|time
go for a walk/went/gone|se promener|.|with|health
look after|s'occuper de|person the:pet the:farm|.|health
go out/went/gone|sortir*|.|with|time
enter|entrer* dans|the:place the:room|.|directions
cross|traverser|crossing|.|directions
follow|suivre|person|.|directions
borrow|emprunter|belonging book vehicle|.|home
lend/lent/lent|prêter|the:belonging the:book the:vehicle the:stationery the:clothes|.|giving
give/gave/given|donner|toy flower book belonging fruit cake snack_food hot_drink|.|giving
show/showed/shown|montrer|the:art the:writing the:toy the:belonging the:machine the:paper|.|giving
bring/brought/brought|apporter|hot_drink cold_drink cake flower the:mail the:paper toy|.|giving
leave/left/left|laisser|the:mail the:belonging the:paper|.|giving
carry|transporter|the:furniture the:machine|.|home
move|déplacer|the:furniture the:textile|.|home
hide/hid/hidden|cacher|the:belonging the:mail toy|.|home
admire|admirer|the:art the:sight the:flower|.|travel
rent|louer|vehicle building|town|travel
feed/fed/fed|nourrir|the:pet the:farm|.|home
water|arroser|the:flower the:plant|.|home
like|aimer|gen:food gen:snack_food gen:hot_drink gen:fruit gen:vegetable gen:pet gen:farm
    gen:subject|!|restaurant
hate|détester|gen:food gen:snack_food gen:hot_drink gen:fruit gen:vegetable gen:subject|!|restaurant
know/knew/known|connaître|person the:area city|!|greetings
have/had/had|avoir|pet farm vehicle belonging machine|!|home
prefer/preferred/preferred|préférer|gen:food gen:hot_drink gen:fruit gen:subject|!|restaurant
"""

# infinitive: present; past participle; future stem; stem of the imperfect if it is not that of "nous"
_IRREGULAR = """
être: suis es est sommes êtes sont; été; ser; ét
avoir: ai as a avons avez ont; eu; aur
aller: vais vas va allons allez vont; allé; ir
pouvoir: peux peux peut pouvons pouvez peuvent; pu; pourr
vouloir: veux veux veut voulons voulez veulent; voulu; voudr
devoir: dois dois doit devons devez doivent; dû; devr
boire: bois bois boit buvons buvez boivent; bu; boir
prendre: prends prends prend prenons prenez prennent; pris; prendr
apprendre: apprends apprends apprend apprenons apprenez apprennent; appris; apprendr
comprendre: comprends comprends comprend comprenons comprenez comprennent; compris; comprendr
venir: viens viens vient venons venez viennent; venu; viendr
revenir: reviens reviens revient revenons revenez reviennent; revenu; reviendr
partir: pars pars part partons partez partent; parti; partir
sortir: sors sors sort sortons sortez sortent; sorti; sortir
dormir: dors dors dort dormons dormez dorment; dormi; dormir
courir: cours cours court courons courez courent; couru; courr
écrire: écris écris écrit écrivons écrivez écrivent; écrit; écrir
lire: lis lis lit lisons lisez lisent; lu; lir
suivre: suis suis suit suivons suivez suivent; suivi; suivr
recevoir: reçois reçois reçoit recevons recevez reçoivent; reçu; recevr
envoyer: envoie envoies envoie envoyons envoyez envoient; envoyé; enverr
voir: vois vois voit voyons voyez voient; vu; verr
ouvrir: ouvre ouvres ouvre ouvrons ouvrez ouvrent; ouvert; ouvrir
peindre: peins peins peint peignons peignez peignent; peint; peindr
connaître: connais connais connaît connaissons connaissez connaissent; connu; connaîtr
promettre: promets promets promet promettons promettez promettent; promis; promettr
servir: sers sers sert servons servez servent; servi; servir
traduire: traduis traduis traduit traduisons traduisez traduisent; traduit; traduir
appeler: appelle appelles appelle appelons appelez appellent; appelé; appeller
"""

# kind: English|French; … ; countries with their preposition, which is what "to", "in" or "at" becomes.
FIXED = parse_tables("""
country: France|en France; Germany|en Allemagne; Spain|en Espagne; Italy|en Italie; England|en Angleterre;
    Belgium|en Belgique; Switzerland|en Suisse; Canada|au Canada; Portugal|au Portugal; Japan|au Japon;
    China|en Chine; Brazil|au Brésil; Ireland|en Irlande; Greece|en Grèce; Norway|en Norvège; Morocco|au Maroc
city: Paris|Paris; London|Londres; Lyon|Lyon; Marseille|Marseille; Bordeaux|Bordeaux; Lille|Lille;
    Toulouse|Toulouse; Strasbourg|Strasbourg; Geneva|Genève; Brussels|Bruxelles; Berlin|Berlin; Rome|Rome;
    Madrid|Madrid; Lisbon|Lisbonne; Montreal|Montréal; Vienna|Vienne; Athens|Athènes; Moscow|Moscou
language: French|français; English|anglais; German|allemand; Spanish|espagnol; Italian|italien; Russian|russe;
    Japanese|japonais; Chinese|chinois; Portuguese|portugais; Arabic|arabe
game: football|le football; tennis|le tennis; cards|les cartes; chess|les échecs; basketball|le basket
instrument: the piano|le piano; the guitar|la guitare; the violin|le violon; the flute|la flûte;
    the drums|la batterie
radio: the radio|la radio
television: television|la télévision
song: a song|une chanson; a beautiful song|une belle chanson
crossing: the street|la rue; the bridge|le pont; the square|la place; the road|la route
home: at home|à la maison
day: Monday|lundi; Tuesday|mardi; Wednesday|mercredi; Thursday|jeudi; Friday|vendredi; Saturday|samedi;
    Sunday|dimanche
month: January|janvier; February|février; March|mars; April|avril; May|mai; June|juin; July|juillet;
    August|août; September|septembre; October|octobre; November|novembre; December|décembre
""")
"""Words and phrases that do not inflect, by kind."""
PROPER = ("city", "country", "language", "game", "instrument")
"""Kinds of fixed phrases that meet verbs as nouns do."""
ASPIRATED = words("haricot hamburger hamster hanche huit onze yaourt")
"""Beginnings of words before which French neither elides nor links."""

# ---- Inflection -----------------------------------------------------------------------------------


def french_plural(noun: str) -> str:
    """Regular plural of a French noun or masculine adjective."""
    if noun[-1] in "sxz":
        return noun
    if noun.endswith(("au", "eu")) and noun != "bleu":
        return noun + "x"
    return noun[:-2] + "aux" if noun.endswith("al") else noun + "s"


def english_plural(noun: str) -> str:
    """Regular plural of an English noun."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeou" else noun + "s"


def _regular_french(infinitive: str) -> tuple[list[str], str, str]:
    """Present, participle and future stem of a regular French verb."""
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "ir":
        return [stem + e for e in words("is is it issons issez issent")], stem + "i", infinitive
    if ending == "re":
        return [stem + e for e in ("s", "s", "", "ons", "ez", "ent")], stem + "u", infinitive[:-1]
    strong, future = stem, infinitive
    if stem.endswith(("oy", "ay", "uy")):
        strong = stem[:-1] + "i"
        future = strong + "er"
    elif match := re.search(r"([eé])(ch|[vtrnlm])$", stem):
        strong = f"{stem[: match.start()]}è{match[2]}"
        future = strong + "er" if match[1] == "e" else infinitive
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    present = [strong + "e", strong + "es", strong + "e", soft + "ons", stem + "ez", strong + "ent"]
    return present, stem + "é", future


_IRREGULAR_FORMS = {name: parts for name, _, parts in (x.partition(": ") for x in table_lines(_IRREGULAR))}


def french_forms(infinitive: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]:
    """Present, imperfect, future (six forms each) and past participle of a French verb."""
    if infinitive in _IRREGULAR_FORMS:
        forms, participle, future, *irregular_stem = _IRREGULAR_FORMS[infinitive].split("; ")
        present = forms.split()
    else:
        present, participle, future = _regular_french(infinitive)
        irregular_stem = []
    stem = irregular_stem[0] if irregular_stem else present[3][:-3]
    # "mangeons" keeps its e before a, "mangions" drops it; "ç" likewise.
    soft = stem[:-1] if stem.endswith("ge") else stem[:-1] + "c" if stem.endswith("ç") else stem
    imperfect = (stem + "ais", stem + "ais", stem + "ait", soft + "ions", soft + "iez", stem + "aient")
    return tuple(present), imperfect, tuple(future + e for e in words("ai as a ons ez ont")), participle


def _english_forms(base: str) -> tuple[str, str, str]:
    """Third person, regular past and -ing form of an English verb."""
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies", base[:-1] + "ied", base + "ing"
    third = {"have": "has", "go": "goes"}.get(base)
    third = third or base + ("es" if base.endswith(("s", "x", "ch", "sh")) else "s")
    if base.endswith("e") and base != "see":
        return third, base + "d", base[:-1] + "ing"
    is_doubled = base in ("get", "begin", "forget", "prefer", "swim", "run", "cut", "travel")
    stem = base + base[-1] if is_doubled else base
    return third, stem + "ed", stem + "ing"


def _entries(table: str) -> Iterator[tuple[str, str]]:
    """The head of a line with each of its entries."""
    for head, _, entries in (line.partition(": ") for line in table_lines(table)):
        yield from ((head, entry) for entry in entries.split(", "))


def _parse_noun(entry: str, kind: str) -> Noun:
    fr, gender, en = entry.split(":")
    fr, _, fr_plural = fr.partition("/")
    en, _, en_plural = en.partition("/")
    return Noun(en, en_plural or english_plural(en), fr, fr_plural or french_plural(fr), gender, kind)


def _parse_adjective(entry: str, kinds: str) -> Adjective:
    fr, en = entry.split(":")
    masculine, *given = fr.split("/")
    regular = (masculine if masculine.endswith("e") else masculine + "e", french_plural(masculine))
    feminine, plural, feminine_plural, before_vowel = (*given, *(*regular, "", masculine)[len(given) :])
    forms = (masculine, feminine, plural, feminine_plural or feminine + "s", before_vowel)
    return Adjective(en, forms, kinds.startswith("^"), words(kinds.removeprefix("^")))


def _parse_verb(english: str, french: str, complement: str, adjunct: str, topic: str) -> Verb:
    phrase, *irregular = english.split("/")
    base, _, particle = phrase.partition(" ")
    third, past, ing = _english_forms(base)
    past, en_participle = irregular or (past, past)
    infinitive, _, preposition = re.sub("^s(e |')", "", french).partition(" ")
    is_reflexive = french.startswith(("se ", "s'"))
    takes_etre = is_reflexive or infinitive.endswith("*")
    infinitive = infinitive.removesuffix("*")
    takes = words(complement) if complement != "." else ()
    return Verb(
        *(phrase, base, third, past, en_participle, ing, particle, infinitive, *french_forms(infinitive)),
        *(takes_etre, is_reflexive, preposition, takes, adjunct, topic),
    )


NOUNS = tuple(_parse_noun(entry, kind) for kind, entry in _entries(_NOUNS))
NOUNS_BY_KIND = {
    kind: tuple(n for n in NOUNS if n.kind == kind) for kind in dict.fromkeys(n.kind for n in NOUNS)
}
ADJECTIVES = tuple(_parse_adjective(entry, kinds) for kinds, entry in _entries(_ADJECTIVES))
VERBS = tuple(_parse_verb(*row) for row in table_rows(_VERBS))
