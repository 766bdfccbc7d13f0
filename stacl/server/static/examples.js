// Example texts by source language. `note` says what to watch for. `into` names the target language if the note holds for
// one only.

const PAPER = "From the paper";

export const EXAMPLES = {
  de: [
    {
      title: "The red hat",
      text: "Eine Frau mit einem roten Hut wird von einem Hund gejagt.",
      note: "The verb “gejagt” (chased) comes last. A small k has to guess it; a larger k guesses better.",
    },
    {
      title: "At the beach",
      text: "Ein Mann und zwei Kinder, die am Strand mit einem Hund spielen.",
      into: "en",
      note: "The verb “spielen” (play) comes last, and English needs it early. Which k writes it before it arrives?",
    },
    {
      title: "Bush meets Putin",
      text: "Präsident Bush hat sich gestern in Moskau mit Putin getroffen.",
      into: "en",
      note: `${PAPER}, figure 1, in German: the verb “getroffen” comes last. Which k writes “met” before it arrives?`,
    },
    {
      title: "Congress cannot agree",
      text: "Doch während man sich im Kongress nicht auf ein Vorgehen einigen kann, warten mehrere Bundesstaaten nicht länger.",
      note: `${PAPER}: “einigen” (agree) stands at the end of its clause; “sich” hints at it.`,
    },
    {
      title: "The green sofa",
      text: "Ein Mann schläft auf einem grünen Sofa.",
      note: "The word order is almost the same, so waiting gains little.",
    },
    {
      title: "A short speech",
      text:
        "Guten Morgen, meine Damen und Herren. Ich freue mich, dass Sie heute so zahlreich gekommen sind. " +
        "Wir wollen darüber sprechen, wie Menschen einander verstehen können, obwohl sie verschiedene Sprachen sprechen. " +
        "Ein Dolmetscher wartet nicht, bis der Redner fertig ist. Er hört zu und spricht zugleich. " +
        "Das ist sehr anstrengend, und niemand hält es lange durch. Vielleicht können uns Maschinen dabei helfen.",
      note: "Several sentences, split as they arrive. The last row is always a whole sentence behind.",
    },
    {
      title: "News",
      text:
        "Die Regierung hat am Dienstag einen neuen Plan für den Verkehr vorgestellt. " +
        "Bis zum Jahr 2030 sollen in den großen Städten mehr Busse und Bahnen fahren. " +
        "Kritiker sagen, dass der Plan zu spät kommt und zu wenig Geld dafür vorgesehen ist.",
      note: "A short news text. Watch the verbs at the ends of the clauses.",
    },
  ],
  zh: [
    {
      title: "Bush meets Putin",
      text: "布什总统在莫斯科与普京会晤。",
      into: "en",
      note: `${PAPER}, figure 1: the verb 会晤 (meet) comes last. Which k writes “met” before it arrives?`,
    },
    {
      title: "Arrangements for the visit",
      text: "他还说现在正在为这一访问作出安排。",
      note: `${PAPER}: 安排 (arrangements) comes last; the paper's wait-1 and wait-3 predict it.`,
    },
    {
      title: "A warm welcome",
      text: "江泽民对布什总统来华访问表示热烈欢迎。",
      into: "en",
      note: `${PAPER}: 表示 … 欢迎 (express … welcome) stands at the end and comes early in English.`,
    },
    {
      title: "The missing reporter (a)",
      text: "美国当局对沙特记者失踪一案感到担忧。",
      note: `${PAPER}: 感到担忧 (feel concern) can be guessed from 失踪 (missing).`,
    },
    {
      title: "The missing reporter (b)",
      text: "美国当局对沙特记者失踪一案感到不满。",
      note: `${PAPER}: only the last word differs. A small k cannot know it; a larger k can.`,
    },
    {
      title: "The green sofa",
      text: "一个男人在绿色的沙发上睡觉。",
      note: "A caption: Chinese gives the place before the verb.",
    },
    {
      title: "News",
      text: "中国政府星期二公布了一项新的交通计划。到2030年，大城市将增加更多的公共汽车和地铁。专家认为，这项计划将改善空气质量。",
      note: "A short news text. There are no spaces: the server finds the words as the characters arrive.",
    },
  ],
  en: [
    {
      title: "The largest fire",
      text:
        "It was learned that this is the largest fire accident in the medical and health system nationwide " +
        "since the founding of New China.",
      into: "zh",
      note: `${PAPER}: Chinese needs “since the founding of New China” first; in English it comes last.`,
    },
    {
      title: "The green sofa",
      text: "A man is sleeping on a green sofa.",
      into: "zh",
      note: "A caption: Chinese gives the place before the verb.",
    },
    {
      title: "The green sofa",
      text: "A man is sleeping on a green sofa.",
      into: "de",
      note: "A caption: the word order is almost the same, so waiting gains little.",
    },
    {
      title: "A short speech",
      text:
        "Good morning, ladies and gentlemen. I am glad that so many of you have come today. " +
        "We want to talk about how people can understand each other although they speak different languages.",
      note: "Several sentences, split as they arrive. The last row is always a whole sentence behind.",
    },
  ],
};

export function examplesFor(source, target) {
  const all = EXAMPLES[plain(source)] ?? [];
  return all.filter(({ into }) => !into || into === plain(target));
}

/** A language without its region. */
function plain(code) {
  return code.split("-")[0];
}
